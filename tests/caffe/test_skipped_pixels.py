"""Pixels that no reader looks at are not computed (native/engine/plan/skip_pixels.cpp): results are
those of a net that keeps all blobs, and so computes them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparknet.caffe as caffe
from sparknet.caffe.int8 import Calibration
from sparknet.errors import ArrayError
from sparknet.native import has_bf16, has_int8
from sparknet.proto import parse_net
from tests.caffe.gradient import input_layer

PRECISIONS = ["float32", "bf16"] if has_bf16() else ["float32"]


def conv(name: str, bottom: str, outputs: int, options: str = "kernel_size: 1") -> str:
    """A convolution with the layers that are computed with it."""
    return f"""
        layer {{ name: "{name}" type: "Convolution" bottom: "{bottom}" top: "{name}"
          convolution_param {{ num_output: {outputs} {options}
            weight_filler {{ type: "msra" }} bias_filler {{ type: "gaussian" std: 0.2 }} }} }}
        layer {{ name: "{name}_scale" type: "Scale" bottom: "{name}" top: "{name}"
          scale_param {{ bias_term: true filler {{ type: "uniform" min: 0.5 max: 1 }} }} }}
        """


def relu(name: str) -> str:
    return f'layer {{ name: "{name}_relu" type: "ReLU" bottom: "{name}" top: "{name}" }}\n'


def stage(kernel: int, stride: int, readers: int = 2, first: int = 1) -> str:
    """The end of a ResNet's stage, and the convolutions that follow it."""
    window = f"kernel_size: {kernel} pad: {kernel // 2} stride: {first}"
    text = conv("start", "data", 24) + relu("start")
    text += conv("down", "start", 8) + relu("down")
    text += conv("middle", "down", 16, window) + relu("middle")
    text += conv("up", "middle", 24)
    other = "start" if first == 1 else "shortcut"
    if first > 1:
        text += conv("shortcut", "start", 24, f"kernel_size: 1 stride: {first}")
    text += f'layer {{ name: "sum" type: "Eltwise" bottom: "{other}" bottom: "up" top: "sum" }}\n'
    text += relu("sum")
    for number in range(readers):
        name = f"out{number}"
        text += conv(name, "sum", 17 + number, f"kernel_size: 1 stride: {stride}") + relu(name)
    return text


def build(text, data, precision="float32", keep=False):
    message = parse_net(input_layer("data", data.shape) + text)
    if precision == "int8":
        message.int8_param.CopyFrom(calibrated(text, data))
    net = caffe.Net.from_proto(message, caffe.TEST, seed=3, precision=precision, keep_blobs=keep)
    net.blobs["data"].data[...] = data
    return net


def calibrated(text, data):
    net = build(text, data, keep=True)
    net.forward()
    found = Calibration(net.graph)
    found.note({name: net.blobs[name].data for name in found.blobs})
    return found.done()


def draw(*shape):
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def same(got, want, precision="float32"):
    """Sums in another order, and in bfloat16 values that are stored between the layers there."""
    assert got.keys() == want.keys()
    near = 2.0**-6 if precision == "bf16" else 1e-5
    for name in want:
        np.testing.assert_allclose(
            got[name], want[name], rtol=0, atol=near * np.abs(want[name]).max()
        )


@pytest.mark.parametrize("precision", PRECISIONS)
@settings(max_examples=40, deadline=None)
@given(
    images=st.integers(1, 3),
    size=st.tuples(st.integers(3, 19), st.integers(3, 19)),
    kernel=st.sampled_from([1, 3, 5]),
    stride=st.integers(1, 4),
    readers=st.integers(1, 3),
    first=st.integers(1, 2),
)
def test_results_are_the_same(precision, images, size, kernel, stride, readers, first):
    text, data = stage(kernel, stride, readers, first), draw(images, 6, *size)
    want = build(text, data, precision, keep=True).forward()
    net = build(text, data, precision)
    same(net.forward(), want, precision)
    same(net.forward(), want, precision)


@pytest.mark.skipif(not has_int8(), reason="this processor has no numbers of eight bits")
@settings(max_examples=20, deadline=None)
@given(
    size=st.tuples(st.integers(3, 19), st.integers(3, 19)),
    kernel=st.sampled_from([1, 3]),
    stride=st.integers(2, 3),
    first=st.integers(1, 2),
)
def test_results_of_eight_bits_are_the_same(size, kernel, stride, first):
    """Between layers that are computed together nothing is rounded: a net of which somebody looks
    at the blobs behind them rounds in the same places."""
    text, data = stage(kernel, stride, 2, first), draw(2, 6, *size)
    whole = build(text, data, "int8")
    found = whole.forward(["sum", "middle"])
    same(build(text, data, "int8").forward(), {name: found[name] for name in whole.outputs})


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_pass_in_two_parts_computes_all_pixels(precision):
    text, data = stage(3, 2), draw(2, 6, 12, 11)
    want = build(text, data, precision, keep=True).forward()
    net = build(text, data, precision)
    last = len(net.layers) - 1
    for cut in range(last):
        net._forward(0, cut)
        net._forward(cut + 1, last)
        same({name: np.array(net.blobs[name].data) for name in want}, want, precision)
        same(net.forward(), want, precision)


def test_a_blob_that_somebody_looks_at_is_whole():
    text, data = stage(3, 2), draw(2, 6, 12, 11)
    kept = build(text, data, keep=True)
    want = kept.forward()
    expected = {
        "sum": np.array(kept.blobs["sum"].data),
        "middle": np.array(kept.blobs["middle"].data),
    }
    net = build(text, data)
    same(net.forward(), want)
    with pytest.raises(ArrayError, match="were given back"):
        _ = net.blobs["sum"].data
    found = net.forward(["sum", "middle"])
    same({name: found[name] for name in expected}, expected)
    same({name: found[name] for name in want}, want)


@pytest.mark.parametrize(
    "other",
    [
        'layer { name: "p" type: "Power" bottom: "sum" top: "p" }',
        conv("p", "sum", 3, "kernel_size: 3 stride: 2"),
        conv("p", "sum", 3, "kernel_size: 1 stride: 3"),
        conv("p", "sum", 3, "kernel_size: 1 stride_h: 2 stride_w: 1"),
        conv("p", "sum", 3, "kernel_size: 1 stride: 2 pad: 1"),
    ],
)
def test_one_reader_of_all_pixels_is_enough(other):
    text, data = stage(3, 2) + other, draw(2, 6, 12, 11)
    same(build(text, data).forward(), build(text, data, keep=True).forward())


def test_a_layer_that_writes_in_place_sees_all_pixels():
    power = 'layer { name: "p" type: "Power" bottom: "sum" top: "sum" power_param { shift: 1 } }'
    text = stage(3, 2, 0) + power + conv("out", "sum", 7, "kernel_size: 1 stride: 2")
    text, data = text + relu("out"), draw(2, 6, 12, 11)
    same(build(text, data).forward(), build(text, data, keep=True).forward())


def test_shapes_that_change():
    text = stage(3, 2)
    net = build(text, draw(2, 6, 12, 11))
    net.forward()
    for shape in [(1, 6, 7, 20), (3, 6, 12, 11)]:
        data = draw(*shape)
        net.blobs["data"].reshape(*shape)
        net.blobs["data"].data[...] = data
        same(net.forward(), build(text, data, keep=True).forward())


def test_what_nobody_reads_takes_no_memory():
    net = build(stage(1, 4, 1), draw(4, 6, 160, 160))
    net.forward()
    # Of the 24 channels of `sum` and the 16 of `middle` one pixel in sixteen.
    whole = 4 * 4 * 160 * 160
    assert net._runtime.engine.memory()["pages"] < whole * (6 + 24 + 8 + (24 + 16) // 4)
