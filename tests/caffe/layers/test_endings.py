"""In the test phase a convolution or a product computes the sum and the function behind it, too:
the numbers of float64, and no pass of their own."""

import numpy as np
import pytest

from sparknet import caffe
from tests.caffe.gradient import build, check_gradients
from tests.fuzz.kernels.case import CLOSE, Case, check, draw_inputs, draw_params
from tests.fuzz.kernels.chains import FUNCTIONS as OPTIONS
from tests.fuzz.kernels.sizes import text

NAMES = (
    *("relu", "relu6", "clip", "swish", "beta", "sigmoid", "tanh", "hard_swish"),
    *("gelu", "gelu_tanh"),
)
FUNCTIONS = dict(zip(NAMES, OPTIONS, strict=True))
CONVOLUTIONS = {
    # batch, channels, outputs, group, window, stride, size
    "odd": (1, 5, 7, 1, 3, 1, 9),
    "points": (2, 24, 144, 1, 1, 1, 14),
    "depthwise": (2, 40, 40, 40, 5, 2, 15),
    "seven": (1, 33, 33, 33, 7, 1, 13),
    "picture": (2, 3, 32, 1, 3, 2, 33),
    "few_products": (1, 64, 64, 1, 3, 1, 56),
}
PRODUCTS = {"one": (1, 33, 17), "few": (12, 64, 48), "rows": (129, 96, 83), "many": (257, 384, 128)}


def end(function: str, is_summed: bool, in_place: bool = True) -> str:
    """A sum with `other`, if wanted, and the function: in place or not."""
    start = "sum" if is_summed else "product"
    layers = text("sum", "Eltwise", "product other", "sum") if is_summed else ""
    top = start if in_place else "out"
    return layers + f'layer {{ name: "end" {FUNCTIONS[function]} bottom: "{start}" top: "{top}" }}'


def check_case(layers, inputs):
    """The values are those of float64, the end takes no time, and NaN goes through."""
    case = Case("chain", layers, inputs, phase="TEST", keep_blobs=False, backward=False)
    assert not check(case), case
    values = draw_inputs(case)
    net = build(layers, values, caffe.TEST, force=False, keep_blobs=False)
    draw_params(net, 1)
    net.time_layers(True)
    net.forward()
    assert net.layer_times()[0][-1] == 0
    for blob in (net.blobs["data"], net.params["product"][0], net.blobs.get("other")):
        if blob is None:
            continue
        before = np.array(blob.data)
        place = before.size // before.shape[0] // 2
        blob.data.flat[place] = np.nan
        (spoilt,) = (np.isnan(values) for values in net.forward().values())
        assert spoilt.any()
        assert "other" not in net.blobs or blob is not net.blobs["other"] or spoilt.flat[place]
        if blob is net.blobs["data"]:
            assert spoilt[0].any()
            assert not spoilt[1:].any()
        blob.data[...] = before


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    monkeypatch.setitem(CLOSE, "float32", 2e-5)


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("is_summed", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("size", PRODUCTS)
def test_products(size, function, is_summed, in_place):
    rows, inputs, outputs = PRODUCTS[size]
    options = f"inner_product_param {{ num_output: {outputs} }}"
    layers = text("product", "InnerProduct", "data", "product", options)
    shapes = {"data": (rows, inputs)} | ({"other": (rows, outputs)} if is_summed else {})
    check_case(layers + end(function, is_summed, in_place), shapes)


def convolution(sizes):
    batch, channels, outputs, group, window, stride, side = sizes
    places = (side + 2 * (window // 2) - window) // stride + 1
    options = f"num_output: {outputs} group: {group} kernel_size: {window} stride: {stride}"
    options = f"convolution_param {{ {options} pad: {window // 2} }}"
    shapes = {"data": (batch, channels, side, side), "other": (batch, outputs, places, places)}
    return text("product", "Convolution", "data", "product", options), shapes


@pytest.mark.parametrize("is_summed", [False, True])
@pytest.mark.parametrize(
    ("size", "function"),
    [(size, function) for size in list(CONVOLUTIONS)[:-1] for function in FUNCTIONS]
    + [("few_products", "swish"), ("few_products", "relu")],
)
def test_convolutions(size, function, is_summed):
    layers, shapes = convolution(CONVOLUTIONS[size])
    if not is_summed:
        del shapes["other"]
    check_case(layers + end(function, is_summed), shapes)


@pytest.mark.parametrize("function", ["gelu", "swish", "sigmoid", "clip"])
def test_gradients_in_the_test_phase_have_what_they_read(function):
    """A net that is tested and passed back through computes the function by itself."""
    options = 'inner_product_param { num_output: 10 weight_filler { type: "xavier" } }'
    layers = text("product", "InnerProduct", "data", "product", options) + end(function, False)
    x = np.random.default_rng(5).standard_normal((3, 6))
    check_gradients(layers, {"data": x}, phase=caffe.TEST, step=1e-3)


@pytest.mark.parametrize("is_summed", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("group", [1, 2, 8])
@pytest.mark.parametrize("size", [(11,), (6, 5, 4)])
def test_sequences_and_volumes(size, group, function, is_summed):
    """oneDNN has no kernel of its own for their groups: the function follows, once."""
    x = np.random.default_rng(6).standard_normal((2, 8, *size))
    options = f"num_output: 8 group: {group} kernel_size: 3 pad: 1"
    layers = text("product", "Convolution", "data", "product", f"convolution_param {{ {options} }}")
    results = []
    for keep in (True, False):
        inputs = {"data": x, "other": x[::-1]} if is_summed else {"data": x}
        whole = layers + end(function, is_summed)
        net = build(whole, inputs, caffe.TEST, force=False, keep_blobs=keep)
        draw_params(net, 1)
        if keep:  # layer by layer
            for number in range(len(net.layers)):
                net._forward(number, number)
            results.append(np.array(net.blobs[net.outputs[0]].data))
        else:
            results += net.forward().values()
    np.testing.assert_allclose(*results, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("function", ["Sigmoid", "TanH"])
def test_nan_goes_through_a_function_of_few_channels(function):
    """oneDNN fills two channels up to a block, where its functions made a number of NaN."""
    options = 'num_output: 2 kernel_size: 3 kernel_depth: 2 weight_filler { type: "gaussian" }'
    options = f"convolution3d_param {{ {options} }}"
    layers = text("product", "Deconvolution3D", "data", "product", options)
    layers += text("between", "HardSwish", "product", "end") + text("f", function, "end", "end")
    x = np.random.default_rng(3).standard_normal((4, 3, 4, 2, 5))
    x[1] = np.nan
    net = build(layers, {"data": x}, caffe.TEST, force=False, keep_blobs=False)
    spoilt = np.isnan(net.forward()["end"])
    assert spoilt[1].all()
    assert not spoilt[[0, 2, 3]].any()
