"""AbsVal, BNLL, Clip, ELU, Exp, Log, Power, PReLU, ReLU, ReLU6, Sigmoid, Swish, TanH …"""

import math

import pytest

from sparknet.layers import LAYERS
from sparknet.layers.layer import TEST
from tests.layers.nets import layer, plan

VALUES = [
    ("AbsVal", "", {}),
    ("BNLL", "", {}),
    ("Clip", "clip_param { min: -1 max: 2 }", {"min": -1, "max": 2}),
    ("ELU", "", {"alpha": 1}),
    ("ELU", "elu_param { alpha: 0.5 }", {"alpha": 0.5}),
    ("Exp", "", {"inner_scale": 1, "outer_scale": 1}),
    (
        "Exp",
        "exp_param { base: 2 scale: 3 shift: 2 }",
        {"inner_scale": pytest.approx(3 * math.log(2)), "outer_scale": pytest.approx(4)},
    ),
    ("Exp", "exp_param { shift: 1 }", {"inner_scale": 1, "outer_scale": pytest.approx(math.e)}),
    ("Log", "", {"scale": 1, "shift": 0, "base_scale": 1, "diff_scale": 1}),
    (
        "Log",
        "log_param { base: 4 scale: 2 shift: 3 }",
        {
            "scale": 2,
            "shift": 3,
            "base_scale": pytest.approx(1 / math.log(4)),
            "diff_scale": pytest.approx(2 / math.log(4)),
        },
    ),
    (
        "Power",
        "power_param { power: 3 scale: 2 shift: 1 }",
        {"power": 3, "scale": 2, "shift": 1, "diff_scale": 6},
    ),
    ("ReLU", "relu_param { negative_slope: 0.5 }", {"negative_slope": 0.5}),
    ("ReLU6", "", {}),
    ("Sigmoid", "", {}),
    ("Swish", "swish_param { beta: 2 }", {"beta": 2}),
    ("TanH", "", {}),
    ("Threshold", "threshold_param { threshold: 0.5 }", {"threshold": 0.5}),
    (
        "Dropout",
        "dropout_param { dropout_ratio: 0.75 }",
        {"ratio": 0.75, "scale": 4, "train": True},
    ),
]


@pytest.mark.parametrize(("kind", "options", "values"), VALUES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (2, 3, 4, 5, 6)])
def test_one_value_to_one_value(kind, options, values, shape):
    found = plan(kind, options, shape)
    assert found.tops == (shape,)
    assert found.values == values
    assert found.params == ()


def test_in_place_and_gradient():
    kinds = {kind for kind, _, _ in VALUES} | {"PReLU", "Softmax"}
    assert {kind for kind in kinds if not LAYERS[kind].works_in_place} == {"AbsVal"}
    assert {kind for kind in kinds if not LAYERS[kind].has_gradient} == {"Threshold"}


def test_dropout_copies_in_test():
    train = layer("Dropout")
    test = LAYERS["Dropout"](train.parameter, TEST)
    assert test.plan([(2,)]).values == {"ratio": 0.5, "scale": 1, "train": False}
