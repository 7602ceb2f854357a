"""Validation by several workers: metrics that are no means over records are those of all."""

from pathlib import Path

import numpy as np
import pytest

from sparknet import LinearLayer, Net, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import AbsVal, Convolution, Eltwise, EuclideanLoss, Reduction
from sparknet.errors import DataError, SettingError
from sparknet.loaders.records import ClassesWarning
from sparknet.training import Averaging, train
from sparknet.training.workers.records import _all_rows
from tests.training import small

NET = NetParams(
    "pixels",
    RDDLayer("data", shape=[4, 1, 3, 3]),
    RDDLayer("label", shape=[4, 1, 3, 3]),
    Convolution("score", "data", num_output=3, kernel_size=1, weight_filler="xavier"),
    SoftmaxWithLoss("loss", ["score", "label"]),
)
SOLVER = SolverParams(net=NET, base_lr=0.1, lr_policy="fixed", random_seed=1)


@pytest.mark.parametrize("workers", [2, 3])
def test_mean_iou_over_all_workers(workers):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(40, 1, 3, 3)).astype(np.float32)
    label = np.digitize(data, [-1.2, 0.3]).astype(np.float32)
    order = np.argsort(label.mean((1, 2, 3)))  # so that the workers' shares differ
    rows = {"data": data[order], "label": label[order]}
    wanted = ["mean_iou"]
    trained = train(
        SOLVER,
        rows,
        validation=rows,
        workers=workers,
        steps=4,
        metrics=wanted,
        metric="mean_iou",
    )
    net = Net(SOLVER)
    net.set_weights(trained.weights)
    net.set_validation_data(rows)
    want = net.test(metrics=wanted)
    assert trained.outcome.metrics["mean_iou"] == pytest.approx(want["mean_iou"], abs=1e-6)
    assert trained.outcome.metrics["loss"] == pytest.approx(want["loss"], rel=1e-5)


def test_rows_of_all_workers_in_their_order():
    mine = [np.array([[1, 2], [3, 4]], np.float32), None, np.array([[5, 6]], np.float32)]

    def rows(rank, comm):
        return _all_rows(comm, mine[rank]).tolist()

    assert small.together(3, rows) == [[[1, 2], [3, 4], [5, 6]]] * 3
    assert small.together(2, lambda rank, comm: _all_rows(comm, None).shape) == [(0, 0)] * 2


def test_a_notebook_shows_the_outcome():
    data = {"data": np.ones((4, 1, 3, 3), np.float32), "label": np.ones((4, 1, 3, 3), np.float32)}
    trained = train(SOLVER, data, validation=data, workers=1, steps=2)
    shown = trained._repr_html_()
    assert "<td>ended because</td><td>steps</td>" in shown
    assert f"<td>loss</td><td>{trained.outcome.metrics['loss']:.5g}</td>" in shown
    assert "<td>samples</td><td>8</td>" in shown


def _rising(**names):
    """A solver of a line, whose rate is so large that its errors rise from some step on."""
    net = NetParams(
        "line",
        RDDLayer("data", shape=[8, 1]),
        RDDLayer("label", shape=[8, 1]),
        LinearLayer("ip", "data", num_outputs=1, weight_filler="xavier"),
        EuclideanLoss("euclid", ["ip", "label"]),
        *names.get("more", ()),
    )
    return SolverParams(net=net, base_lr=0.7, lr_policy="fixed", momentum=0.9, random_seed=1)


X = np.random.default_rng(0).normal(size=(64, 1)).astype(np.float32)


@pytest.mark.parametrize("metric", ["mae", "r2", None])
def test_the_best_weights_are_those_of_the_least_error(metric):
    trained = train(
        _rising(),
        (X, 2 * X + 1),
        validation=(X, 2 * X + 1),
        strategy=Averaging(1),
        validate_every=1,
        metrics=["mae", "rmse", "r2"],
        metric=metric,
        patience=2,
        steps=12,
    )
    name = metric or "euclid"
    seen = [e["metrics"][name] for e in trained.history.events if e["event"] == "validation"]
    best = (max if name == "r2" else min)(seen)
    assert trained.outcome.metrics[name] == best != (min if name == "r2" else max)(seen)


ABSOLUTE = [
    Eltwise("far", ["ip", "label"], eltwise_param={"operation": "SUM", "coeff": [1, -1]}),
    AbsVal("off", "far"),
    Reduction("mae", "off", reduction_param={"operation": "MEAN"}),
]


@pytest.mark.parametrize(
    "given", [{"metric": "mae"}, {"metrics": ["confusion"], "metric": "confusion[0]"}]
)
def test_a_metric_without_a_direction_needs_a_goal(given):
    told = {"validation": (X, X), "steps": 3, "strategy": Averaging(1), "validate_every": 1}
    with pytest.raises(SettingError, match="is better: give goal='max'"):
        train(_rising(more=ABSOLUTE), (X, X), **told, **given)
    if given == {"metric": "mae"}:
        best = train(_rising(more=ABSOLUTE), (X, X), **told, **given, goal="min", patience=1)
        assert best.outcome.metrics["mae"] == min(
            e["metrics"]["mae"] for e in best.history.events if e["event"] == "validation"
        )


def photos(folder: Path, **classes: int) -> Path:
    """A folder with so many grey pictures of 3 x 3 pixels in the subfolder of each class."""
    image = pytest.importorskip("PIL.Image")
    for name, count in classes.items():
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = np.full((3, 3, 3), 20 * number, np.uint8)
            image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


PHOTOS = NetParams(
    "photos",
    RDDLayer("data", shape=[4, 3, 3, 3]),
    RDDLayer("label", shape=[4]),
    LinearLayer("ip", "data", num_outputs=3, weight_filler="xavier"),
    SoftmaxWithLoss("loss", ["ip", "label"]),
)


def test_the_training_set_numbers_the_classes(tmp_path):
    solver = SolverParams(net=PHOTOS, base_lr=1e-4, lr_policy="fixed", random_seed=1)
    training = photos(tmp_path / "tr", cat=2, dog=2, elk=2)
    held = photos(tmp_path / "va", dog=3, elk=5)
    how = {"steps": 1, "metrics": ["confusion"], "scale": 1 / 256}
    trained = train(solver, training, validation=held, **how)
    assert trained.confusion is not None
    assert trained.confusion.sum(1).tolist() == [0, 3, 5]
    shown = trained._repr_html_()
    assert str(trained.confusion.astype(int).tolist()) in shown
    assert "confusion[" not in shown
    assert trained.net.labels == ("cat", "dog", "elk")
    net = Net(solver)  # by itself
    net.set_training_data(training)
    net.set_validation_data(held)
    assert net.test(metrics=["class_accuracy"])["class_accuracy[0]"] != 0  # nan: there is no cat
    photos(tmp_path / "va", fox=1)
    with pytest.raises(DataError, match="validation data has class 'fox', and the net's classes"):
        train(solver, training, validation=held, **how)
    more = photos(tmp_path / "more", elk=4)  # of a net that knows its classes
    net = trained.net
    again = train(net, more, validation=more, steps=1, metrics=["confusion"])
    assert again.outcome.metrics["confusion[6]"] + again.outcome.metrics["confusion[8]"] > 0
    assert again.net.labels == trained.net.labels


def test_other_classes_without_names_are_told(tmp_path):
    net = Net(SolverParams(net=PHOTOS, base_lr=1, lr_policy="fixed"))
    with pytest.warns(ClassesWarning, match="numbered from 0 in this order: 'dog', 'elk'"):
        net.set_validation_data(photos(tmp_path, dog=1, elk=1))


def test_columns_of_a_table(tmp_path):
    pandas = pytest.importorskip("pandas")
    points = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    words = np.where(points[:, 0] > 0, "yes", "no")
    table = pandas.DataFrame(points, columns=["a", "b"]).assign(answer=words, row=range(200))
    net = NetParams(
        "table",
        RDDLayer("data", shape=[20, 2]),
        RDDLayer("label", shape=[20]),
        LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
        SoftmaxWithLoss("loss", ["ip", "label"]),
    )
    solver = SolverParams(net=net, base_lr=0.5, lr_policy="fixed", random_seed=1)
    how = {"features": ["a", "b"], "label": "answer", "metrics": ["confusion"], "steps": 40}
    trained = train(solver, table, validation=table[table.answer == "yes"], **how)
    assert trained.net.labels == ("no", "yes")
    assert trained.confusion is not None
    assert trained.confusion.sum(1).tolist() == [0, (words == "yes").sum()]
    plain = train(solver, (points, (words == "yes").astype(int)), steps=40)
    assert trained.weights.allclose(plain.weights)


def test_a_loss_above_that_of_guessing_is_told(caplog):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 3, 3, 3), dtype=np.uint8)
    solver = SolverParams(net=PHOTOS, base_lr=0.05, lr_policy="fixed", random_seed=1)
    trained = train(solver, (pixels, np.arange(40) % 3), steps=60)
    notes = [event["text"] for event in trained.history.events if event["event"] == "note"]
    assert len(notes) == 1
    assert "after 50 iterations, and guessing gives 1.1; the usual causes are a base_lr" in notes[0]
    assert "'data' runs from 0 to 25" in notes[0]
    assert notes[0] in [record.message for record in caplog.records]
