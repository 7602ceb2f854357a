"""Bad rows in the stages of pyspark.ml and in training, on a real session."""

import numpy as np
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("PIL")

from sparknet import Net
from sparknet.errors import SettingError, SparkError
from sparknet.loaders import ArrayRecords
from sparknet.spark import SparkModel, Trainer, read_records
from sparknet.spark.pipeline import NetEstimator, NetFeaturizer, NetModel
from tests.spark.test_bad_rows import NET, VALUES, net, raw

ROWS = ("png", "2 x 2", "jpeg", "null", "gif", "cut to 10 x 10", "grey bmp")
GOOD = ("png", "jpeg", "gif", "grey bmp")
SOLVER = f"base_lr: 0.00001 lr_policy: 'fixed' random_seed: 1 net_param {{ {NET} }}"


@pytest.fixture(scope="module")
def photographs(session):
    rows = [(f"file:/{name}", VALUES[name], number % 3) for number, name in enumerate(ROWS)]
    rows.append(("file:/label", VALUES["png"], 7))
    return session.createDataFrame(rows, "path string, photo binary, kind int").coalesce(2).cache()


def scores(name):
    return net("resize").forward({"data": [VALUES[name]]}, ["ip"])["ip"][0]


def test_stages_keep_or_skip_what_they_cannot_read(photographs):
    model = SparkModel(NET, net("resize").get_weights(), columns={"data": "photo"}, resize=9)
    stages = [
        NetFeaturizer(model, inputCol="photo", outputCol="deep", output="ip"),
        NetModel(model, rawPredictionCol="deep", predictionCol="class", outputs=[]),
    ]
    for stage in stages:
        with pytest.raises(Exception, match=r"column 'photo': .* \(file:/(2 x 2|cut to 10 x 10)\)"):
            stage.transform(photographs).select("deep").collect()
        kept = stage.setHandleInvalid("keep").transform(photographs).collect()
        skipped = stage.setHandleInvalid("skip").transform(photographs).collect()
        assert [row.path for row in kept] == [row.path for row in photographs.collect()]
        for row in kept:
            name = row.path.removeprefix("file:/")
            if name in (*GOOD, "label"):
                wanted = scores("png" if name == "label" else name)
                np.testing.assert_allclose(row.deep.toArray(), wanted, rtol=1e-4, atol=1e-3)
            else:
                assert row.deep is None
                assert row.asDict().get("class") is None
        assert skipped == [row for row in kept if row.deep is not None]
    with pytest.raises(SparkError, match="handleInvalid is 'ignore': it is one of error, keep"):
        NetFeaturizer(model, handleInvalid="ignore")


def test_training_leaves_bad_rows_out_and_counts_them(photographs):
    settings = {"columns": {"data": "photo", "label": "kind"}, "resize": 9}
    trainer = Trainer(SOLVER, workers=2, steps=2, **settings)
    with pytest.raises(SettingError, match="invalid must be 'raise' or 'drop', not 'null'"):
        Trainer(SOLVER, invalid="null", **settings)
    with pytest.raises(Exception, match=r"column '(photo|kind)'.*\(file:/.* of the training data"):
        trainer.fit(photographs)
    estimator = NetEstimator(
        SOLVER,
        featuresCol="photo",
        labelCol="kind",
        workers=2,
        maxIter=2,
        resize=9,
        handleInvalid="skip",
    )
    assert estimator.trainer.invalid == "drop"
    assert NetEstimator(Trainer(SOLVER, invalid="drop")).getHandleInvalid() == "skip"
    fitted = estimator.fit(photographs)
    (told,) = (event for event in fitted.summary.events if event["event"] == "workers")
    assert sum(worker["dropped"] for worker in told["workers"]) == len(ROWS) - len(GOOD) + 1
    assert sum(worker["records"] for worker in told["workers"]) == len(GOOD)
    reasons = [worker["reason"] for worker in told["workers"] if worker["reason"]]
    assert all("(file:/" in reason for reason in reasons)
    assert fitted.transform(photographs).count() == len(GOOD) + 1


def test_raw_records_of_files_are_resized(session):
    """Their columns say of what size they are; the bytes alone do not."""
    pictures = np.stack([np.frombuffer(raw(6, 10), np.uint8).reshape(3, 6, 10)] * 2)
    data = read_records(session, ArrayRecords(data=pictures))
    model = SparkModel(Net(NET, seed=1, resize=9))
    found = [row.ip for row in model.transform(data, ["ip"]).select("ip").collect()]
    expected = model.net.forward({"data": pictures}, ["ip"])["ip"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    untold = data.selectExpr("substring(data, 1, 180) AS data")
    with pytest.raises(Exception, match="column 'data': is no image that can be read"):
        model.transform(untold, ["ip"]).collect()
