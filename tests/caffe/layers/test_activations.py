"""Activations and PReLU: values and gradients for every option and layout."""

import math

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.errors import LayerError
from sparknet.proto import parse_net
from tests.caffe.gradient import check_gradients, input_layer, run


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ANY = np.array([[-6.0, -3.1, -1.7, -0.9, -0.3, -0.05], [0.04, 0.2, 0.8, 1.6, 2.9, 6.7]])
POSITIVE = np.abs(ANY) + 0.2

CASES = {
    "absval": ('type: "AbsVal"', np.abs, ANY, (0,)),
    "bnll": ('type: "BNLL"', lambda x: np.logaddexp(0, x), ANY, ()),
    "clip": (
        'type: "Clip" clip_param { min: -1 max: 2 }',
        lambda x: np.clip(x, -1, 2),
        ANY,
        (-1, 2),
    ),
    "elu": ('type: "ELU"', lambda x: np.where(x > 0, x, np.expm1(x)), ANY, (0,)),
    "elu_alpha": (
        'type: "ELU" elu_param { alpha: 0.4 }',
        lambda x: np.where(x > 0, x, 0.4 * np.expm1(x)),
        ANY,
        (0,),
    ),
    "elu_zero": (
        'type: "ELU" elu_param { alpha: 0 }',
        lambda x: np.where(x > 0, x, 0),
        ANY,
        (0,),
    ),
    "elu_negative": (
        'type: "ELU" elu_param { alpha: -0.7 }',
        lambda x: np.where(x > 0, x, -0.7 * np.expm1(x)),
        ANY,
        (0,),
    ),
    "exp": ('type: "Exp"', np.exp, ANY / 2, ()),
    "exp_base": (
        'type: "Exp" exp_param { base: 2 scale: 0.5 shift: 1 }',
        lambda x: 2 ** (1 + 0.5 * x),
        ANY,
        (),
    ),
    "mish": ('type: "Mish"', lambda x: x * np.tanh(np.log1p(np.exp(x))), ANY, ()),
    "hard_swish": (
        'type: "HardSwish"',
        lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        ANY,
        (-3, 3),
    ),
    "gelu": ('type: "GELU"', lambda x: x * (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2, ANY, ()),
    "gelu_tanh": (
        'type: "GELU" gelu_param { approximate: TANH }',
        lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2,
        ANY,
        (),
    ),
    "log": ('type: "Log"', np.log, POSITIVE, ()),
    "log_base": (
        'type: "Log" log_param { base: 10 scale: 3 shift: 0.5 }',
        lambda x: np.log10(3 * x + 0.5),
        POSITIVE,
        (),
    ),
    "power": ('type: "Power"', lambda x: x, ANY, ()),
    "power_linear": (
        'type: "Power" power_param { scale: -2 shift: 3 }',
        lambda x: 3 - 2 * x,
        ANY,
        (),
    ),
    "power_square": (
        'type: "Power" power_param { power: 2 scale: 0.5 shift: 0.3 }',
        lambda x: (0.3 + 0.5 * x) ** 2,
        ANY,
        (),
    ),
    "power_cube": ('type: "Power" power_param { power: 3 }', lambda x: x**3, ANY, ()),
    "power_root": ('type: "Power" power_param { power: 0.5 }', np.sqrt, POSITIVE + 1, ()),
    "power_inverse": (
        'type: "Power" power_param { power: -1 shift: 0.5 }',
        lambda x: 1 / (x + 0.5),
        POSITIVE,
        (),
    ),
    "power_zero": ('type: "Power" power_param { power: 0 }', np.ones_like, ANY, ()),
    "power_constant": (
        'type: "Power" power_param { power: 2 scale: 0 shift: 3 }',
        lambda x: np.full_like(x, 9),
        ANY,
        (),
    ),
    "relu": ('type: "ReLU"', lambda x: np.maximum(x, 0), ANY, (0,)),
    "relu6": ('type: "ReLU6"', lambda x: np.clip(x, 0, 6), ANY, (0, 6)),
    "sigmoid": ('type: "Sigmoid"', sigmoid, ANY, ()),
    "swish": ('type: "Swish"', lambda x: x * sigmoid(x), ANY, ()),
    "swish_beta": (
        'type: "Swish" swish_param { beta: 1.7 }',
        lambda x: x * sigmoid(1.7 * x),
        ANY,
        (),
    ),
    "tanh": ('type: "TanH"', np.tanh, ANY, ()),
}


def layer(spec: str, bottom: str = "x", top: str = "y") -> str:
    return f'layer {{ name: "l" bottom: "{bottom}" top: "{top}" {spec} }}\n'


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradient(name):
    spec, function, x, kinks = CASES[name]
    net = run(layer(spec), {"x": x})
    np.testing.assert_allclose(net.blobs["y"].data, function(x), rtol=1e-5, atol=1e-6)
    check_gradients(layer(spec), {"x": x}, kinks=kinks, step=1e-3, tolerance=5e-3)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 100, -100, 0, -0.0, 89, -90], np.float32)


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("exp", [np.nan, np.inf, 0, np.inf, 0, 1, 1, np.inf, 0]),
        ("sigmoid", [np.nan, 1, 0, 1, 0, 0.5, 0.5, 1, 0]),
        ("tanh", np.tanh(SPECIAL)),
        ("elu", [np.nan, np.inf, -1, 100, -1, 0, 0, 89, -1]),
        ("bnll", [np.nan, np.inf, 0, 100, 0, np.log(2), np.log(2), 89, 0]),
        ("clip", [np.nan, 2, -1, 2, -1, 0, 0, 2, -1]),
        ("relu6", [np.nan, 6, 0, 6, 0, 0, 0, 6, 0]),
        ("power_square", (0.3 + 0.5 * SPECIAL) ** 2),
    ],
)
def test_extreme_values(name, want):
    """What is not a number stays visible."""
    net = run(layer(CASES[name][0]), {"x": SPECIAL})
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(net.blobs["y"].data, np.asarray(want, np.float32), atol=1e-30)


def test_clip_with_its_bounds_exchanged_gives_the_lower_one():
    """Caffe: max(min, min(x, max))."""
    net = run(layer('type: "Clip" clip_param { min: 2 max: -1 }'), {"x": [-3, 0, 1, 5]})
    assert np.array_equal(net.blobs["y"].data, [2, 2, 2, 2])


def test_bnll_has_half_a_slope_at_zero():
    net = run(layer('type: "BNLL"'), {"x": np.zeros(3)})
    net.blobs["y"].diff[...] = 1
    net.backward()
    np.testing.assert_allclose(net.blobs["x"].diff, 0.5)


def test_exponential_is_exact_to_two_units():
    x = np.linspace(-87, 88.5, 200001).astype(np.float32)
    net = run(layer('type: "Exp"'), {"x": x})
    want = np.exp(x.astype(np.float64))
    assert np.max(np.abs(net.blobs["y"].data / want - 1)) < 2.5e-7


def test_bnll_of_very_negative_values_keeps_its_digits():
    x = np.array([-10, -20, -50, -80], np.float32)
    net = run(layer('type: "BNLL"'), {"x": x})
    np.testing.assert_allclose(net.blobs["y"].data, np.exp(x.astype(np.float64)), rtol=1e-4)


def test_power_has_a_gradient_at_zero():
    """Caffe divides the output by the input there, and gets NaN."""
    net = run(layer(CASES["power_cube"][0]), {"x": np.zeros(3)})
    net.blobs["y"].diff[...] = 1
    net.backward()
    assert np.array_equal(net.blobs["x"].diff, np.zeros(3))


def test_threshold():
    x = np.array([-1, 0, 0.5, 0.5000001, 2, np.nan], np.float32)
    for bound in (0, 0.5, -2):
        net = run(layer(f'type: "Threshold" threshold_param {{ threshold: {bound} }}'), {"x": x})
        assert np.array_equal(net.blobs["y"].data, (x > bound).astype(np.float32))


@pytest.mark.parametrize("kind", ["Threshold", "ArgMax"])
def test_no_backward_pass(kind):
    net = run(layer(f'type: "{kind}"'), {"x": ANY})
    with pytest.raises(LayerError, match=f"'l'.*{kind}.*no gradient.*'x'"):
        net.backward()


def test_silence_gives_zeros():
    text = input_layer("x", (2, 3)) + 'force_backward: true layer { name: "s" type: "Silence" '
    net = caffe.Net.from_proto(parse_net(text + 'bottom: "x" }'), caffe.TRAIN)
    net.forward()
    net.blobs["x"].diff[...] = 7
    net.backward()
    assert np.array_equal(net.blobs["x"].diff, np.zeros((2, 3)))
