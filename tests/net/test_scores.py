"""Metrics by name, against their plain definitions, by parts and by workers."""

import numpy as np
import pytest

from sparknet import EuclideanLoss, InnerProduct, NetParams, RDDLayer, SoftmaxWithLoss
from sparknet.errors import DataError, SettingError
from sparknet.net import Net
from sparknet.net.scores import NAMES, Scores, finished, judged_blobs
from sparknet.training import simulate, train
from tests.training import small

RNG = np.random.default_rng(0)
CLASSES = 4


def scored(names, *pieces):
    """The metrics of pieces that as many workers measured."""
    found: dict[str, float] = {}
    total = sum(len(made) for made, _ in pieces)
    for made, real in pieces:
        scores = Scores(names)
        for begin in range(0, len(made), 3):
            part = slice(begin, begin + 3)
            scores.add(made[part], real[part], len(made[part]))
        for name, value in scores.parts().items():
            found[name] = found.get(name, 0.0) + value * len(made) / total
    return finished(found, names, total)


@pytest.mark.parametrize("shape", [(), (5, 6)], ids=["labels", "masks"])
def test_metrics_of_classes(shape):
    made = RNG.normal(size=(31, CLASSES, *shape)).astype(np.float32)
    real = RNG.integers(0, CLASSES, (31, *shape)).astype(np.float32)
    real.ravel()[::7] = 255  # to be ignored
    found = scored(
        ["confusion", "class_accuracy", "mean_iou"], (made[:20], real[:20]), (made[20:], real[20:])
    )
    best, counts = made.argmax(axis=1), np.zeros((CLASSES, CLASSES))
    for guess, label in zip(best.ravel(), real.ravel().astype(int), strict=True):
        if label != 255:
            counts[label, guess] += 1
    assert [found[f"confusion[{n}]"] for n in range(CLASSES**2)] == counts.ravel().tolist()
    for label in range(CLASSES):
        of_class = counts[label, label] / counts[label].sum()
        assert found[f"class_accuracy[{label}]"] == pytest.approx(of_class)
    overlap = [
        counts[n, n] / (counts[n].sum() + counts[:, n].sum() - counts[n, n]) for n in range(CLASSES)
    ]
    assert found["mean_iou"] == pytest.approx(np.mean(overlap))


def test_the_label_that_a_loss_ignores_does_not_count():
    ignoring = {"ignore_label": 0}
    judged = judged_blobs(
        NetParams(
            "n",
            RDDLayer("score", shape=[4, 3]),
            RDDLayer("label", shape=[4]),
            SoftmaxWithLoss("loss", ["score", "label"], loss_param=ignoring),
        ).to_proto(),
        ["score", "label"],
    )
    assert judged == ("score", "label", 0)
    scores = Scores(["confusion"])
    scores.add(np.eye(3)[[0, 1, 2, 1]], np.array([0.0, 0.0, 2.0, 2.0]), 4, judged.ignored)
    found = finished(scores.parts(), ["confusion"], 4)
    assert [*found.values()] == [0, 0, 0, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("order", [["ip", "target"], ["target", "ip"]])
def test_a_loss_may_name_its_target_first(order):
    net = NetParams(
        "n",
        RDDLayer("x", shape=[4, 3]),
        RDDLayer("target", shape=[4, 2]),
        InnerProduct("ip", ["x"], num_output=2),
        EuclideanLoss("loss", order),
    )
    assert judged_blobs(net.to_proto(), ["x", "target"]) == ("ip", "target", None)


def test_metrics_of_values():
    made, real = RNG.normal(size=(2, 40, 3)).astype(np.float32)
    found = scored(["mae", "rmse", "r2"], (made[:11], real[:11]), (made[11:], real[11:]))
    error = made.astype(np.float64) - real
    assert found["mae"] == pytest.approx(np.abs(error).mean())
    assert found["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    assert found["r2"] == pytest.approx(1 - (error**2).sum() / ((real - real.mean()) ** 2).sum())


def test_a_class_without_records_has_no_accuracy():
    made = np.eye(3, dtype=np.float32)[[0, 1, 1]]
    found = scored(["class_accuracy", "mean_iou"], (made, np.array([0.0, 1.0, 0.0])))
    assert found["class_accuracy[0]"] == 0.5
    assert np.isnan(found["class_accuracy[2]"])
    assert found["mean_iou"] == pytest.approx((0.5 + 0.5) / 2)


def test_a_net_is_tested_by_name():
    net = Net(small.settings(), seed=1)
    net.set_validation_data(small.records(30))
    found = net.test(metrics=["rmse", "r2"])
    batch = small.records(30).take(slice(0, 30))
    made = net.forward({"x": batch["x"]}, outputs=["y"])["y"]
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((made - batch["t"]) ** 2)), rel=1e-5)
    assert found["loss"] == net.test()["loss"]
    assert set(found) == {"loss", "rmse", "r2"}


@pytest.mark.parametrize("run", [train, simulate])
def test_workers_measure_together(run):
    held = small.records(30)
    made = run(
        small.settings(),
        small.records(),
        workers=2,
        steps=10,
        validation=held,
        metrics=["rmse", "mae"],
    )
    made.net.set_validation_data(held)
    alone = made.net.test(metrics=["rmse", "mae"])
    assert made.outcome.metrics == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize(
    ("names", "wrong"),
    [
        (["mean_iu"], "there is no metric 'mean_iu'.*mean_iou"),
        ("rmse", "metrics must be a list of names, not 'rmse'"),
    ],
)
def test_unknown_names_are_refused(names, wrong):
    with pytest.raises(SettingError, match=wrong):
        Net(small.settings(), seed=1).test(metrics=names)
    with pytest.raises(SettingError, match=wrong):
        train(small.settings(), small.records(), steps=1, metrics=names)


def test_what_does_not_fit_is_refused():
    with pytest.raises(DataError, match="3 predictions do not fit 4 labels"):
        Scores(["confusion"]).add(np.zeros((3, 2)), np.zeros(4), 3)
    with pytest.raises(DataError, match="need 2 to 1000 of them, not 0"):
        Scores(["confusion"]).add(np.zeros(3), np.zeros(3), 3)
    assert len(NAMES) == 6
