"""In the test phase a convolution or a product computes the sum and the function behind it, too:
the numbers of float64, and no pass of their own."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sparknet import caffe
from sparknet.proto import caffe_pb2, parse_text

Array = np.ndarray[Any, Any]

_erf = np.vectorize(math.erf)
FUNCTIONS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "relu": ('type: "ReLU"', lambda x: np.maximum(x, 0)),
    "relu6": ('type: "ReLU6"', lambda x: np.clip(x, 0, 6)),
    "clip": ('type: "Clip" clip_param { min: -0.5 max: 1.25 }', lambda x: np.clip(x, -0.5, 1.25)),
    "swish": ('type: "Swish"', lambda x: x / (1 + np.exp(-x))),
    "beta": ('type: "Swish" swish_param { beta: 1.7 }', lambda x: x / (1 + np.exp(-1.7 * x))),
    "sigmoid": ('type: "Sigmoid"', lambda x: 1 / (1 + np.exp(-x))),
    "tanh": ('type: "TanH"', np.tanh),
    "hard_swish": ('type: "HardSwish"', lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "gelu": ('type: "GELU"', lambda x: x * (1 + _erf(x / 2**0.5)) / 2),
    "gelu_tanh": (
        'type: "GELU" gelu_param { approximate: TANH }',
        lambda x: x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
    ),
}
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


def _end(function: str, added: bool, place: str) -> str:
    """A sum with `other`, if wanted, and the function: in place or not."""
    start = "sum" if added else "made"
    top = start if place == "in place" else "out"
    text = ""
    if added:
        text = 'layer { name: "sum" type: "Eltwise" bottom: "made" bottom: "other" top: "sum" }\n'
    kind = FUNCTIONS[function][0]
    return text + f'layer {{ name: "end" {kind} bottom: "{start}" top: "{top}" }}\n'


def _net(text: str, precision: str = "float32") -> Any:
    message = parse_text(text, caffe_pb2.NetParameter)
    return caffe.Net.from_proto(message, caffe.TEST, keep_blobs=False, precision=precision, seed=1)


def _inputs(**shapes: tuple[int, ...]) -> str:
    dims = {name: " ".join(f"dim: {size}" for size in shape) for name, shape in shapes.items()}
    return "".join(
        f'layer {{ name: "{name}" type: "Input" top: "{name}" '
        f"input_param {{ shape {{ {one} }} }} }}\n"
        for name, one in dims.items()
    )


def _run(net: Any, rng: Any) -> tuple[Array, float]:
    """The output, and the time that the last layer took by itself."""
    for name in net.inputs:
        net.blobs[name].data[...] = rng.standard_normal(net.blobs[name].data.shape)
    for blobs in net.params.values():
        for blob in blobs:
            scale = (2 / max(1, blob.count / blob.shape[0])) ** 0.5
            blob.data[...] = rng.standard_normal(blob.data.shape) * scale
    net.time_layers(True)
    net.forward()
    spent = net._runtime.times()[0][-1]
    return np.array(net.blobs[list(net.blobs)[-1]].data), spent


def _convolved(x: Array, weights: Array, group: int, stride: int, pad: int) -> Array:
    size = weights.shape[2]
    padded = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    parts = zip(np.split(windows, group, 1), np.split(weights, group, 0), strict=True)
    sums = [np.tensordot(x, w, ([1, 4, 5], [1, 2, 3])) for x, w in parts]
    return np.concatenate(sums, 3).transpose(0, 3, 1, 2)


def _check_nan(net: Any, want: Callable[[], Array]) -> None:
    """A NaN in the first record, in a weight or in what is added goes through, and stays alone."""
    for blob in (net.blobs["data"], net.params["product"][0], net.blobs["other"]):
        kept = np.array(blob.data)
        blob.data.flat[kept.size // kept.shape[0] // 2] = np.nan
        net.forward()
        spoilt = np.isnan(net.blobs[list(net.blobs)[-1]].data)
        assert spoilt[np.isnan(want())].all()
        if blob is net.blobs["data"]:
            assert spoilt[0].any()
            assert not spoilt[1:].any()
        blob.data[...] = kept


@pytest.mark.parametrize("place", ["in place", "behind"])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("size", PRODUCTS)
def test_products(size, function, added, place):
    rows, inputs, outputs = PRODUCTS[size]
    text = (
        _inputs(data=(rows, inputs), other=(rows, outputs))
        + 'layer { name: "product" type: "InnerProduct" bottom: "data" top: "made" '
        + f"inner_product_param {{ num_output: {outputs} }} }}\n"
        + _end(function, added, place)
    )
    net = _net(text)
    got, spent = _run(net, np.random.default_rng(3))

    def want() -> Array:
        weights, bias = (np.asarray(blob.data, np.float64) for blob in net.params["product"])
        made = net.blobs["data"].data.astype(np.float64) @ weights.T + bias
        return FUNCTIONS[function][1](made + (net.blobs["other"].data if added else 0))

    np.testing.assert_allclose(got, want(), atol=2e-5, rtol=2e-5)
    assert spent == 0
    _check_nan(net, want)


CASES = [
    (size, function, added)
    for size in CONVOLUTIONS
    for function in (FUNCTIONS if size != "few_products" else ["swish", "relu"])
    for added in (False, True)
]


@pytest.mark.parametrize(("size", "function", "added"), CASES)
def test_convolutions(size, function, added):
    batch, channels, outputs, group, window, stride, side = CONVOLUTIONS[size]
    pad = window // 2
    places = (side + 2 * pad - window) // stride + 1
    text = (
        _inputs(data=(batch, channels, side, side), other=(batch, outputs, places, places))
        + 'layer { name: "product" type: "Convolution" bottom: "data" top: "made" '
        + f"convolution_param {{ num_output: {outputs} group: {group} kernel_size: {window} "
        + f"stride: {stride} pad: {pad} }} }}\n"
        + _end(function, added, "in place")
    )
    net = _net(text)
    got, spent = _run(net, np.random.default_rng(4))

    def want() -> Array:
        weights, bias = (np.asarray(blob.data, np.float64) for blob in net.params["product"])
        made = _convolved(net.blobs["data"].data, weights, group, stride, pad)
        made += bias.reshape(-1, 1, 1)
        return FUNCTIONS[function][1](made + (net.blobs["other"].data if added else 0))

    np.testing.assert_allclose(got, want(), atol=3e-5, rtol=3e-5)
    assert spent == 0
    _check_nan(net, want)


@pytest.mark.parametrize("function", ["gelu", "swish", "sigmoid", "clip"])
def test_gradients_in_the_test_phase_have_what_they_read(function):
    """A net that is tested and passed back through computes the function by itself."""
    text = (
        "force_backward: true\n"
        + _inputs(data=(9, 12))
        + 'layer { name: "product" type: "InnerProduct" bottom: "data" top: "made" '
        + 'inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }\n'
        + _end(function, False, "in place")
    )
    message = parse_text(text, caffe_pb2.NetParameter)
    net = caffe.Net.from_proto(message, caffe.TEST, seed=1)
    x = np.random.default_rng(5).standard_normal((9, 12))
    net.blobs["data"].data[...] = x
    net.forward()
    net.blobs[net.outputs[0]].diff[...] = 1
    net.backward()
    weights = net.params["product"][0].data.astype(np.float64)
    step = 1e-6
    function_of = FUNCTIONS[function][1]
    made = x.astype(np.float32).astype(np.float64) @ weights.T
    slope = (function_of(made + step) - function_of(made - step)) / (2 * step)
    np.testing.assert_allclose(net.blobs["data"].diff, slope @ weights, atol=1e-4)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("group", [1, 2, 8])
@pytest.mark.parametrize("size", [(11,), (6, 5, 4)])
def test_sequences_and_volumes(size, group, function, added):
    """oneDNN has no kernel of its own for their groups: the function follows, once."""
    shape = (2, 8, *size)
    text = (
        _inputs(data=shape, other=shape)
        + 'layer { name: "product" type: "Convolution" bottom: "data" top: "made" '
        + f"convolution_param {{ num_output: 8 group: {group} kernel_size: 3 pad: 1 }} }}\n"
    )
    made, _ = _run(_net(text), np.random.default_rng(6))
    net = _net(text + _end(function, added, "in place"))
    got, _ = _run(net, np.random.default_rng(6))
    want = FUNCTIONS[function][1](
        made.astype(np.float64) + (net.blobs["other"].data if added else 0)
    )
    np.testing.assert_allclose(got, want, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("function", ["Sigmoid", "TanH"])
def test_nan_goes_through_a_function_of_few_channels(function):
    """oneDNN fills two channels up to a block, where its functions made a number of NaN."""
    text = (
        _inputs(data=(4, 3, 4, 2, 5))
        + 'layer { name: "product" type: "Deconvolution3D" bottom: "data" top: "made" '
        + "convolution3d_param { num_output: 2 kernel_size: 3 kernel_depth: 2 "
        + 'weight_filler { type: "gaussian" std: 1 } } }\n'
        + 'layer { name: "between" type: "HardSwish" bottom: "made" top: "end" }\n'
        + f'layer {{ name: "function" type: "{function}" bottom: "end" top: "end" }}\n'
    )
    net = _net(text)
    net.blobs["data"].data[...] = np.random.default_rng(3).standard_normal((4, 3, 4, 2, 5))
    net.blobs["data"].data[1] = np.nan
    net.forward()
    spoilt = np.isnan(net.blobs["end"].data)
    assert spoilt[1].all()
    assert not spoilt[[0, 2, 3]].any()
