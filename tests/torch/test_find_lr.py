"""find_lr of a module: the losses of torch's own range test."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
from torch import nn

import sparknet
from sparknet.errors import SettingError
from tests.torch.modules import LABELS, POINTS, batches, perceptron, plain

STEPS, LOW, HIGH = 25, 1e-3, 0.3


def rising(optimizer):
    for group in optimizer.param_groups:
        group["lr"] *= LOW / 0.3
    factor = (HIGH / LOW) ** (1 / (STEPS - 1))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor**step)


@pytest.mark.parametrize("ratio", [1.0, 4.0])
def test_the_losses_are_those_of_a_loop(ratio):
    """Of two groups of parameters the second learns faster."""
    module = perceptron()

    def optimizer(parameters):
        first, *others = parameters
        groups = [{"params": [first]}, {"params": others, "lr": 0.3 * ratio}]
        return torch.optim.SGD(groups, lr=0.3, momentum=0.5)

    found = sparknet.find_lr(
        module=module,
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        data={"points": POINTS, "label": LABELS},
        low=LOW,
        high=HIGH,
        steps=STEPS,
        batch_size=12,
        shuffle=False,
    )
    losses = plain(perceptron(), optimizer, batches(STEPS, 12), schedule=rising)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-4)
    assert (found.rates[0], found.rates[-1]) == (LOW, pytest.approx(HIGH))
    assert found.suggestion is not None


def test_what_it_decides_itself():
    how = {"module": perceptron(), "loss": nn.CrossEntropyLoss(), "data": (POINTS, LABELS)}
    sgd = partial(torch.optim.SGD, lr=0.1)
    with pytest.raises(
        SettingError, match=r"^find_lr takes no lr_schedule: it decides that itself"
    ):
        sparknet.find_lr(**how, optimizer=sgd, lr_schedule={"lr_policy": "fixed"})
    with pytest.raises(SettingError, match=r"^a module is trained with a loss and an optimizer"):
        sparknet.find_lr(**how)
