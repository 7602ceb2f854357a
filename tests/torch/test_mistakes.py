"""What cannot be trained is refused in one sentence, before any process starts."""

from functools import partial

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
from torch import nn

import sparknet
from sparknet.errors import ArgumentError, SparkNetError
from sparknet.training.module_setup import _told_of
from tests.torch.modules import LABELS, POINTS, perceptron

DATA = {"points": POINTS, "label": LABELS}
FINE = {
    "loss": nn.CrossEntropyLoss(),
    "optimizer": partial(torch.optim.SGD, lr=0.1),
    "steps": 1,
    "workers": 2,
}


def frozen() -> nn.Module:
    return perceptron().requires_grad_(False)


MISTAKES = {
    "no parameters": ({"module": nn.Identity()}, "module 'Identity' has no parameters"),
    "frozen": ({"module": frozen()}, "no parameter that requires a gradient"),
    "double": ({"module": perceptron().double()}, "parameter 'first.weight' .* is float64"),
    "no module": ({"module": 3}, "module must be a module of PyTorch.*, not int"),
    "no loss": ({"loss": None}, "with a loss and an optimizer: give loss"),
    "loss of several": (
        {"loss": nn.CrossEntropyLoss(reduction="none")},
        r"the loss of a batch must be one number, not \(2,\)",
    ),
    "loss of nothing": (
        {"loss": lambda made, real: torch.zeros(())},
        "the loss of module 'Perceptron' does not depend on its parameters",
    ),
    "no optimizer": ({"optimizer": 0.1}, "optimizer must be an optimizer of torch.optim"),
    "foreign": (
        {"optimizer": torch.optim.SGD(perceptron().parameters(), lr=0.1)},
        "the optimizer has parameters that are none of the module's",
    ),
    "closure": ({"optimizer": torch.optim.LBFGS}, "LBFGS computes gradients itself"),
    "not elementwise": (
        {"optimizer": partial(torch.optim.Adafactor, lr=0.1), "strategy": "allreduce"}
        if hasattr(torch.optim, "Adafactor")
        else {"optimizer": 0.1},
        "optimizer Adafactor cannot update a part of the weights|optimizer must be",
    ),
    "plateau": (
        {"lr_schedule": torch.optim.lr_scheduler.ReduceLROnPlateau},
        "ReduceLROnPlateau, which needs losses",
    ),
    "no column": ({"data": {"points": POINTS}}, "no column 'label' for the target: it has 'points"),
    "a tuple": ({"data": (POINTS,)}, "tuple of 1, the module's arguments and targets are 'points'"),
    "shape": (
        {"data": {"points": POINTS[:, :3], "label": LABELS}},
        r"module 'Perceptron' fails on the first records, 'points' \(2, 3\): RuntimeError",
    ),
    "of nets": ({"lr_mult": {"first": 0.0}}, "lr_mult is for nets, and a module was given"),
    "weights": (
        {"weight_column": "count"},
        "the training data has no column 'count' for weights|the data has no column 'count'",
    ),
    "both": ({"solver": "net"}, "give a solver or a module, not both"),
    "no end": ({"steps": None}, "training has no end: give steps, epochs or seconds"),
    "metric": (
        {"metric": "acuracy", "validation": DATA},
        r"metric is 'acuracy', and validation gives \['accuracy', 'loss'\]",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_it_is_refused(name):
    changed, said = MISTAKES[name]
    given = {"module": perceptron(), "data": DATA, **FINE, **changed}
    with pytest.raises(SparkNetError, match=said):
        sparknet.train(**given)


def test_settings_of_modules_need_one():
    with pytest.raises(SparkNetError, match="batch_size=8 is for a module of PyTorch"):
        sparknet.train("net", DATA, batch_size=8, steps=1)
    with pytest.raises(ArgumentError, match="missing a required argument: 'solver'"):
        sparknet.train(data=DATA, steps=1)


def test_nothing_of_the_users_is_changed():
    module = perceptron(norm=True)
    before = {name: one.clone() for name, one in module.state_dict().items()}
    with pytest.raises(SparkNetError, match="no end"):
        sparknet.train(module=module, data=DATA, **{**FINE, "steps": None})
    for name, one in module.state_dict().items():
        np.testing.assert_array_equal(one, before[name], err_msg=name)


RUNS = {
    "kind": ({"optimizer": partial(torch.optim.Adam, lr=0.1)}, "optimizer is 'SGD', not 'Adam'"),
    "rate": ({"optimizer": partial(torch.optim.SGD, lr=0.2)}, "optimizer lr is 0.1, not 0.2"),
    "clip": ({"clip_gradients": 3.0}, "clip_gradients is None, not 3.0"),
    "accumulate": ({"accumulate": 2}, "accumulate is 1, not 2"),
    "module": ({"module": perceptron(True)}, "module has parts that are not those of this run"),
    "batch": ({"batch_size": 8}, "batch_size is 32, not 8"),
}


def test_a_run_with_other_settings_does_not_go_on(tmp_path):
    given = {"data": DATA, **FINE, "snapshots": tmp_path, "snapshot_every": 1, "workers": 1}
    sparknet.train(module=perceptron(), **given)
    for changed, said in RUNS.values():
        with pytest.raises(SparkNetError, match=f"is of another run: its {said}$"):
            sparknet.train(**{"module": perceptron(), **given, **changed, "resume": True})


def test_a_setting_of_a_group_says_which_group():
    told = _told_of([{"lr": 0.1}, {"lr": 0.2, "betas": (0.9, 0.999)}])
    assert told == {
        "optimizer, group 0, lr": 0.1,
        "optimizer, group 1, lr": 0.2,
        "optimizer, group 1, betas": [0.9, 0.999],
    }


def test_a_module_is_no_net():
    with pytest.raises(
        SparkNetError, match=r"this Linear, a module of PyTorch: give the file that"
    ):
        sparknet.Net(nn.Linear(2, 2))


def test_a_module_predicts_by_first_rows():
    with pytest.raises(SparkNetError, match=r"no first rows to look at.* give it records="):
        sparknet.load(nn.Linear(2, 2)).predict(np.ones((3, 2), np.float32))
