"""Fine-tuning a .onnx on Spark: `Trainer(head=…)` and the estimator's Params."""

import numpy as np
import pytest

from sparknet.onnx import read_model
from sparknet.spark import Trainer
from sparknet.spark.pipeline import NetEstimator
from tests.training.test_recipe import rows, write_recipe


@pytest.fixture
def frame(session):
    pictures, labels = rows()
    data = [(x.ravel().tolist(), int(k)) for x, k in zip(pictures, labels, strict=True)]
    return session.createDataFrame(data, "x array<float>, label int")


def test_a_trainer_gives_a_net_a_new_head(frame, tmp_path):
    model = write_recipe(tmp_path)
    trainer = Trainer(str(model), workers=2, steps=10, head=3, lr_mult={"conv": 0})
    trained = trainer.fit(frame)
    assert trained.net.net.params["head"][0].data.shape == (3, 4)
    before = read_model(model).by_name()["conv"][0]
    np.testing.assert_array_equal(trained.net.net.params["conv"][0].data, before)


def test_an_estimator_has_the_same_settings(frame, tmp_path):
    model = write_recipe(tmp_path)
    estimator = NetEstimator(str(model), maxIter=2, head=3, featuresCol="x")
    estimator.setParams(lr_mult={"conv": 0}, learningRate=0.01)
    assert estimator.trainer.solver.base_lr == np.float32(0.01)
    fitted = estimator.fit(frame)
    found = fitted.transform(frame).select("prediction").distinct().collect()
    assert {row.prediction for row in found} <= {0.0, 1.0, 2.0}
    made = fitted.model.net.net.params
    np.testing.assert_array_equal(made["conv"][0].data, read_model(model).by_name()["conv"][0])
