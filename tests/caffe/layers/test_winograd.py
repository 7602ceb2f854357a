"""Convolutions of 3 x 3 and 5 x 5 windows with fewer products, against sums in double precision."""

from dataclasses import replace

import numpy as np
import pytest

from sparknet import native
from sparknet.layers.convolution import Convolution, plan_convolution
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.oracle import layer_text, same_in_any_number_of_threads
from tests.caffe.layers.passing import draw
from tests.fuzz.kernels.case import CLOSE, Case, check
from tests.fuzz.kernels.sizes import text

PRECISIONS = ["float32", "bf16"] if native.has_bf16() else ["float32"]
each_precision = pytest.mark.parametrize("precision", PRECISIONS)
INFERENCE = {"phase": "TEST", "keep_blobs": False, "backward": False}


@pytest.fixture
def few_products(monkeypatch):
    """The engine takes few products wherever it can, not only where that is faster."""

    def infer(layer, bottoms):
        plan = plan_convolution(layer, bottoms)
        return replace(plan, values={**plan.values, "few_products": True})

    monkeypatch.setattr(Convolution, "infer", infer)
    exact(monkeypatch)


def exact(monkeypatch):
    """A hundred thousandth of the largest value is what the transforms may lose."""
    monkeypatch.setitem(CLOSE, "float32", 1e-5)


def options(outputs: int, pad: tuple[int, int] = (1, 1), group: int = 1, window: int = 3) -> str:
    sizes = f"num_output: {outputs} pad_h: {pad[0]} pad_w: {pad[1]} group: {group}"
    return f"convolution_param {{ {sizes} kernel_size: {window} }}"


def case(shape, *sizes, behind="", **fields):
    layers = text("y", "Convolution", "x", "y", options(*sizes)) + behind
    return Case("convolution", layers, {"x": shape}).but(**fields)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize(
    ("shape", "outputs", "pad", "group"),
    [
        ((1, 16, 4, 4), 16, (1, 1), 1),  # one tile
        ((1, 16, 1, 1), 16, (1, 1), 1),
        ((4, 48, 30, 17), 112, (1, 1), 1),
        ((2, 16, 11, 11), 16, (5, 3), 1),
        ((1, 512, 8, 8), 64, (1, 1), 1),
        ((40, 64, 8, 9), 64, (1, 1), 4),  # several chunks of tiles
        ((2, 3, 9, 6), 20, (1, 1), 1),  # too few channels for a vector
        ((2, 15, 9, 6), 20, (1, 1), 1),
        ((11, 16, 5, 5), 16, (0, 0), 1),
    ],
)
@pytest.mark.parametrize("window", [3, 5])
@each_precision
def test_all_passes(shape, outputs, pad, group, window, precision):
    pad = tuple(size + (window - 3) // 2 for size in pad)
    assert not check(case(shape, outputs, pad, group, window, precision=precision))


def test_all_passes_where_they_are_chosen(monkeypatch):
    exact(monkeypatch)
    assert not check(case((5, 128, 14, 14), 128))
    assert not check(case((16, 32, 16, 16), 48, (2, 2), 1, 5))


@pytest.mark.usefixtures("few_products")
def test_shapes_that_change():
    layer = layer_text("Convolution", options(32))
    net = build(layer, {"x": draw(2, 16, 9, 9)})
    for shape in [(2, 16, 9, 9), (1, 16, 21, 4), (3, 16, 2, 6)]:
        x = draw(*shape, seed=shape[2])
        fresh = build(layer, {"x": x})
        fresh.flat_params.copy_from(net.flat_params)
        net.blobs["x"].reshape(*shape)
        np.testing.assert_array_equal(net.forward(x=x)["y"], fresh.forward()["y"])


@pytest.mark.usefixtures("few_products")
def test_several_bottoms_add_to_one_gradient():
    inputs = {"x": draw(2, 16, 4, 3), "x2": draw(2, 16, 4, 3, seed=3)}
    layer = layer_text("Convolution", options(16).replace("}", f"{FILL} }}"), "x x2", "y y2")
    check_gradients(layer, inputs, tolerance=2e-2)


FILL = "weight_filler { type: 'xavier' } bias_filler { type: 'gaussian' }"
RELU = text("r", "ReLU", "y", "y")
SUM = text("s", "Scale", "y", "y", "scale_param { bias_term: true }")
SUM += text("e", "Eltwise", "other y", "z") + text("r", "ReLU", "z", "z")


@pytest.mark.usefixtures("few_products")
@each_precision
@pytest.mark.parametrize("behind", [RELU, SUM], ids=["relu", "scale and sum"])
def test_with_what_is_fused_behind(behind, precision):
    fused = case((2, 32, 10, 7), 48, behind=behind, precision=precision, **INFERENCE)
    if behind == SUM:
        fused = fused.but(inputs={**fused.inputs, "other": (2, 48, 10, 7)})
    assert not check(fused)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize(("window", "pad"), [(3, 1), (5, 2), (5, 0)])
@each_precision
def test_any_number_of_threads_gives_the_same(window, pad, precision):
    sizes = options(64, (pad, pad), 2, window).replace("}", f"{FILL} }}")
    x = {"x": draw(12, 64, 19, 18)}
    same_in_any_number_of_threads(layer_text("Convolution", sizes), x, precision=precision)


@pytest.mark.usefixtures("few_products")
@pytest.mark.parametrize("value", [np.nan, np.inf])
@each_precision
def test_what_is_not_finite_stays_in_the_tiles_that_see_it(value, precision):
    x = draw(2, 16, 16, 16)
    x[1, 3, 6, 6] = value
    layer = layer_text("Convolution", options(16).replace("}", f"{FILL} }}"))
    net = run(layer, {"x": x}, precision=precision)
    wrong = ~np.isfinite(net.blobs["y"].data)
    assert wrong[1, :, 4:8, 4:8].all()
    wrong[1, :, 4:8, 4:8] = False
    assert not wrong.any()
