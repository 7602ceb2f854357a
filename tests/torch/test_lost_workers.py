"""A worker that is killed: what is left is what no fault would have left."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("pyspark")

import torch
from torch import nn

import sparknet
from sparknet.errors import PeerLost
from tests.spark.saboteur import Saboteur, at_round, kill_worker
from tests.torch.modules import LABELS, POINTS, Perceptron, perceptron


class Dropping(Perceptron):
    """Draws random numbers, which a snapshot has to hold."""

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return super().forward(nn.functional.dropout(points, 0.2, self.training))


def module(kind: type[Perceptron] = Dropping) -> Perceptron:
    torch.manual_seed(0)
    return kind(norm=True)


SETTINGS_OF_RUNS = {
    "loss": nn.CrossEntropyLoss(),
    "optimizer": partial(torch.optim.Adam, lr=0.01),
    "lr_schedule": partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=60),
    "workers": 2,
    "batch_size": 8,
    "strategy": "averaging",
}


def same(first, second):
    np.testing.assert_array_equal(first.weights.flat.numpy(), second.weights.flat.numpy())


def local(**more):
    data = (POINTS, LABELS)
    return sparknet.train(module=module(), data=data, **{**SETTINGS_OF_RUNS, **more})


@pytest.mark.parametrize("buffers", ["average", pytest.param("keep", marks=pytest.mark.long)])
def test_a_run_after_a_killed_process_goes_on_where_its_snapshot_was(tmp_path, buffers):
    whole = local(steps=60, buffers=buffers)
    kept = {"snapshots": tmp_path, "snapshot_every": 2, "buffers": buffers}
    killer = Saboteur(kill_worker(1), at_round(5))
    with pytest.raises(PeerLost, match=r"killed by SIGKILL; resume from .*round-00000004"):
        local(steps=60, on_event=killer, **kept)
    resumed = local(steps=60, resume=True, **kept)
    assert resumed.history.of_kind("start")[0]["resumed"].endswith("round-00000004")
    same(resumed, whole)
    begun = sparknet.train(
        module=perceptron(True, seed=5),
        data=(POINTS, LABELS),
        weights=tmp_path,
        **{**SETTINGS_OF_RUNS, "steps": 0},
    )
    same(begun, whole)


def test_workers_of_one_process_have_random_numbers_of_their_own():
    same(local(hosts=1, steps=12), local(steps=12))
