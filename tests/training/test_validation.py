"""Validation by several workers: metrics that are no means over records are those of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet import LinearLayer, Net, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import AbsVal, Convolution, Eltwise, EuclideanLoss, Reduction
from sparknet.errors import SettingError
from sparknet.training import Averaging, train
from sparknet.training.worker_records import _all_rows
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
def test_mean_iou_over_all_workers(workers: int) -> None:
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


def test_rows_of_all_workers_in_their_order() -> None:
    mine = [np.array([[1, 2], [3, 4]], np.float32), None, np.array([[5, 6]], np.float32)]

    def rows(rank: int, comm: Any) -> Any:
        return _all_rows(comm, mine[rank]).tolist()

    assert small.together(3, rows) == [[[1, 2], [3, 4], [5, 6]]] * 3
    assert small.together(2, lambda rank, comm: _all_rows(comm, None).shape) == [(0, 0)] * 2


def test_a_notebook_shows_the_outcome() -> None:
    data = {"data": np.ones((4, 1, 3, 3), np.float32), "label": np.ones((4, 1, 3, 3), np.float32)}
    trained = train(SOLVER, data, validation=data, workers=1, steps=2)
    shown = trained._repr_html_()
    assert "<td>ended because</td><td>steps</td>" in shown
    assert f"<td>loss</td><td>{trained.outcome.metrics['loss']:.5g}</td>" in shown
    assert "<td>samples</td><td>8</td>" in shown


def _rising(**names: Any) -> SolverParams:
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
def test_the_best_weights_are_those_of_the_least_error(metric: str | None) -> None:
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
def test_a_metric_without_a_direction_needs_a_goal(given: Any) -> None:
    told = {"validation": (X, X), "steps": 3, "strategy": Averaging(1), "validate_every": 1}
    with pytest.raises(SettingError, match="is better: give goal='max'"):
        train(_rising(more=ABSOLUTE), (X, X), **told, **given)
    if given == {"metric": "mae"}:
        best = train(_rising(more=ABSOLUTE), (X, X), **told, **given, goal="min", patience=1)
        assert best.outcome.metrics["mae"] == min(
            e["metrics"]["mae"] for e in best.history.events if e["event"] == "validation"
        )
