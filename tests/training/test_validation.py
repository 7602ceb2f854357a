"""Validation by several workers: metrics that are no means over records are those of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet import Net, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import Convolution
from sparknet.training import train
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
