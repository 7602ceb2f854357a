"""Training and predicting on Spark in a fork's dialect."""

import numpy as np
import pytest

pytest.importorskip("pyspark")

from sparknet import Net
from sparknet.errors import SpecError
from sparknet.spark import SparkModel, Trainer
from sparknet.spark.pipeline import NetEstimator
from tests.training.test_dialect import NET, SOLVER, points

SCHEMA = "x array<float>, label float"


@pytest.mark.parametrize(("dialect", "blobs"), [("segnet", 2), ("pspnet", 4)])
def test_trainer_estimator_and_model(session, dialect, blobs):
    columns = points()
    rows = list(zip(columns["x"].tolist(), columns["label"].tolist(), strict=True))
    data = session.createDataFrame(rows, SCHEMA)
    trained = Trainer(SOLVER, workers=2, steps=4, dialect=dialect).fit(data)
    assert len(trained.weights["b"]) == blobs
    pipe = NetEstimator(SOLVER, maxIter=4, featuresCol="x", dialect=dialect).fit(data)
    assert len(pipe.model.net.net.params["b"]) == blobs
    made = SparkModel(NET, trained.weights, dialect=dialect).transform(data, ["ip"], batch=64)
    net = Net(NET, trained.weights, dialect=dialect)
    want = net.forward({"x": columns["x"]}, ["ip"])["ip"]
    got = np.array([row.ip for row in made.collect()])
    if dialect == "segnet":  # by the statistics of each batch, of which Spark makes its own
        assert got.shape == want.shape
    else:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(SpecError, match="give dialect='hed' to Net itself"):
        SparkModel(net, dialect="hed")
