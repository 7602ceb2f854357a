"""AbsVal, BNLL, Clip, ELU, Exp, Log, Power, PReLU, ReLU, ReLU6, Sigmoid, Swish, TanH …"""

import math

import pytest

from sparknet.errors import LayerError
from sparknet.layers import LAYERS
from sparknet.layers.layer import TEST
from tests.layers.nets import layer, plan, shapes_of_params

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


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("Exp", "exp_param { base: -2 }", "base -2 must be positive"),
        ("Exp", "exp_param { base: 0 }", "base 0 must be positive"),
        ("Exp", "exp_param { base: inf }", "base inf must be positive and finite"),
        ("Exp", "exp_param { base: nan }", "base nan must be positive"),
        ("Exp", "exp_param { shift: 1000 }", "too large"),
        ("Log", "log_param { base: -3 }", "base -3 must be positive"),
        ("Log", "log_param { base: 1 }", "base 1 has no logarithm"),
        ("Dropout", "dropout_param { dropout_ratio: 1 }", "dropout_ratio 1 must be"),
        ("Dropout", "dropout_param { dropout_ratio: -0.5 }", "dropout_ratio -0.5 must be"),
        ("PReLU", "", "at least 2 axes; its shape is 3"),
        ("PReLU", "prelu_param { filler { type: 'x' } }", "at least 2 axes"),
    ],
)
def test_refused(kind, options, says):
    with pytest.raises(LayerError, match=says):
        plan(kind, options, (3,))


def test_prelu():
    found = plan("PReLU", "", (2, 3, 4, 5))
    assert found.tops == ((2, 3, 4, 5),)
    assert found.values == {"channel_shared": False, "outer": 2, "channels": 3, "inner": 20}
    assert shapes_of_params(found) == [(3,)]
    assert found.params[0].filler.value == 0.25
    shared = plan("PReLU", "prelu_param { channel_shared: true filler { value: 2 } }", (2, 3))
    assert shapes_of_params(shared) == [()]
    assert shared.params[0].filler.value == 2
    with pytest.raises(LayerError, match="unknown filler 'x'"):
        plan("PReLU", "prelu_param { filler { type: 'x' } }", (2, 3))


def test_softmax():
    found = plan("Softmax", "softmax_param { axis: -2 }", (2, 3, 4, 5))
    assert found.tops == ((2, 3, 4, 5),)
    assert found.values == {"axis": 2, "outer": 6, "channels": 4, "inner": 5}
    with pytest.raises(LayerError, match="axis 1 is out of range for the shape 3"):
        plan("Softmax", "", (3,))


@pytest.mark.parametrize(
    ("options", "shape", "top"),
    [
        ("", (2, 3, 4), (2, 1, 1)),
        ("", (2,), (2, 1, 1)),
        ("argmax_param { top_k: 2 }", (2, 3, 4, 5, 6), (2, 1, 2, 1, 1)),
        ("argmax_param { top_k: 3 out_max_val: true }", (2, 3), (2, 2, 3)),
        ("argmax_param { top_k: 2 axis: -1 out_max_val: true }", (4, 3), (4, 2)),
    ],
)
def test_argmax(options, shape, top):
    assert plan("ArgMax", options, shape).tops == (top,)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("argmax_param { top_k: 0 }", "top_k 0 must be from 1 to the number of values, 12"),
        ("argmax_param { top_k: 13 }", "top_k 13 must be from 1 to the number of values, 12"),
        ("argmax_param { top_k: 4 axis: 1 }", "top_k 4 must be from 1 to the number of values, 3"),
        ("argmax_param { axis: 3 }", "axis 3 is out of range"),
    ],
)
def test_argmax_refused(options, says):
    with pytest.raises(LayerError, match=says):
        plan("ArgMax", options, (2, 3, 4))
