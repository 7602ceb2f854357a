"""TorchLearner, held against the loop that one writes in torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")


import torch

from sparknet.training import AllReduce, Averaging, RunPlan, work
from sparknet.training.local import LocalComm
from tests.torch.modules import (
    LABELS,
    POINTS,
    batches,
    learner_of,
    perceptron,
    plain,
    records,
    values,
)
from tests.training.groups import together

SGD, ADAM = torch.optim.SGD, torch.optim.Adam
OPTIMIZERS = {
    "sgd": partial(SGD, lr=0.1),
    "momentum": partial(SGD, lr=0.1, momentum=0.9, weight_decay=1e-3),
    "nesterov": partial(SGD, lr=0.1, momentum=0.9, nesterov=True),
    "dampening": partial(SGD, lr=0.1, momentum=0.9, dampening=0.5),
    "adam": partial(ADAM, lr=0.01),
    "amsgrad": partial(ADAM, lr=0.01, amsgrad=True),
    "adamw": partial(torch.optim.AdamW, lr=0.01, weight_decay=0.1),
    "nadam": partial(torch.optim.NAdam, lr=0.01),
    "radam": partial(torch.optim.RAdam, lr=0.01),
    "adagrad": partial(torch.optim.Adagrad, lr=0.1, initial_accumulator_value=0.1),
    "adadelta": partial(torch.optim.Adadelta, lr=1.0),
    "rmsprop": partial(torch.optim.RMSprop, lr=0.01, momentum=0.5, centered=True),
}
Make = Callable[[Any], Any]


def trained(workers: int, steps: int, strategy: Any, **how: Any) -> list[Any]:
    """The learners of so many workers, after training."""
    module = how.pop("module", perceptron())
    batch = how.pop("batch", 12)
    comms = LocalComm.group(workers)
    made = [
        learner_of(module, how["optimizer"], records(), batch, rank, workers, **_rest(how))
        for rank in range(workers)
    ]
    plan = RunPlan(steps=steps)
    together(comms, lambda comm: work(made[comm.rank], strategy, comm, plan))
    return made


def _rest(how: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in how.items() if name != "optimizer"}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_one_worker_is_the_loop_of_torch(name: str) -> None:
    module = perceptron(norm=True)
    (learner,) = trained(1, 25, Averaging(steps=10), optimizer=OPTIMIZERS[name], module=module)
    plain(module, OPTIMIZERS[name], batches(25, 12))
    found = values(learner.flat.module)
    for key, value in values(module).items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_allreduce_of_two_is_one_with_twice_the_batch(name: str) -> None:
    module = perceptron()
    first, second = trained(2, 25, AllReduce(), optimizer=OPTIMIZERS[name], module=module)
    np.testing.assert_array_equal(first.weights.numpy(), second.weights.numpy())
    plain(module, OPTIMIZERS[name], (joined(step) for step in range(25)))
    found = values(first.flat.module)
    for key, value in values(module).items():
        np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-5, err_msg=key)


def joined(step: int) -> tuple[Any, Any]:
    """What two workers have in a step: each takes every second record."""
    at = np.arange(step * 24, (step + 1) * 24) % len(POINTS)
    return torch.from_numpy(POINTS[at]), torch.from_numpy(LABELS[at])
