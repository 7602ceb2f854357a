"""Im2col, convolution over more axes than oneDNN has, and Deconvolution at published sizes."""

import numpy as np
import pytest

import sparknet.caffe as caffe
from sparknet.native import has_bf16
from sparknet.proto import parse_net
from tests.caffe.gradient import check_gradients, input_layer
from tests.caffe.layers.oracle import (
    layer_text,
    passes,
    values,
)

WINDOWS = [
    "kernel_size: 2",
    "kernel_size: 3 pad: 2 stride: 2",
    "kernel_size: 2 pad: 1 stride: 3 dilation: 2",
]


FOUR = (2, 4, 3, 3, 2, 3)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
@pytest.mark.parametrize("rest", ["", "group: 2", "bias_term: false"])
def test_four_axes_gradients(window, kind, rest):
    options = f"num_output: 2 {window} {rest} weight_filler {{ type: 'gaussian' std: 0.2 }}"
    if kind == "Convolution" or "pad" not in window:
        shape = (1, 2, 3, 3, 3, 3)
    else:
        shape = (1, 2, 2, 2, 2, 2)
    text = layer_text(kind, f"convolution_param {{ {options} }}")
    check_gradients(text, {"x": np.sin(values(*shape))}, tolerance=2e-2)


@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
def test_a_fourth_axis_of_one_changes_nothing(kind):
    x = np.sin(values(*FOUR[:5]))
    rest = "num_output: 6 group: 2 weight_filler { value: 0.3 type: 'constant' }"
    three = f"kernel_size: [2, 3, 2] pad: [1, 1, 0] stride: [2, 1, 1] {rest}"
    four = f"kernel_size: [2, 3, 2, 1] pad: [1, 1, 0, 0] stride: [2, 1, 1, 1] {rest}"
    y, _, net = passes(layer_text(kind, f"convolution_param {{ {three} }}"), {"x": x})
    y4, _, net4 = passes(
        layer_text(kind, f"convolution_param {{ {four} }}"), {"x": x[..., np.newaxis]}
    )
    np.testing.assert_allclose(y4[..., 0], y, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        net4.blobs["x"].diff[..., 0], net.blobs["x"].diff, rtol=1e-4, atol=1e-5
    )
    for a, b in zip(net4.params["l"], net.params["l"], strict=True):
        np.testing.assert_allclose(a.diff.reshape(b.diff.shape), b.diff, rtol=1e-4, atol=1e-4)


def test_depthwise():
    options = "num_output: 4 group: 4 kernel_size: 3 pad: 1 weight_filler { type: 'xavier' }"
    text = layer_text("DepthwiseConvolution", f"convolution_param {{ {options} }}")
    check_gradients(text, {"x": np.sin(values(1, 4, 4, 3))})
    plain = passes(text, {"x": np.sin(values(1, 4, 4, 3))})[0]
    assert plain.shape == (1, 4, 4, 3)


SHAPES = (
    ((1, 256, 16, 16), 128, "kernel_size: 4 stride: 2 pad: 1"),
    ((1, 256, 9, 7), 64, "kernel_size: 4 stride: 2 pad: 1"),
    ((1, 512, 5, 5), 256, "kernel_size: 4 stride: 2 pad: 1"),
    ((1, 128, 7, 7), 64, "kernel_size: 4 stride: 4"),
    ((1, 64, 9, 9), 32, "kernel_size: 6 stride: 2 pad: 2"),
    ((1, 64, 9, 9), 32, "kernel_size: 8 stride: 4 pad: 2"),
    ((1, 32, 5, 5), 32, "kernel_size: 16 stride: 8 pad: 4"),
    ((3, 64, 7, 10), 20, "kernel_size: 16 stride: 2 pad_h: 3 pad_w: 0"),
    ((3, 32, 18, 9), 32, "kernel_size: 16 stride: 2 pad_h: 2 pad_w: 4"),
    ((3, 64, 4, 4), 1, "kernel_size: 16 stride: 2 pad: 3"),
    ((1, 16, 5, 6), 16, "kernel_size: 32 stride: 16"),
    ((1, 21, 3, 4), 21, "kernel_size: 64 stride: 32"),
)


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST], ids=["train", "test"])
@pytest.mark.parametrize("precision", ["float32", *(["bf16"] if has_bf16() else [])])
@pytest.mark.parametrize(("shape", "outputs", "options"), SHAPES, ids=lambda one: str(one))
def test_the_bias_is_added_once(shape, outputs, options, precision, phase):
    text = (
        f'layer {{ name: "up" type: "Deconvolution" bottom: "data" top: "up" '
        f"convolution_param {{ num_output: {outputs} {options} }} }}"
    )
    message = parse_net(input_layer("data", shape) + text)
    net = caffe.Net.from_proto(message, phase, precision=precision)
    bias = (np.arange(outputs) - 3) / 8  # multiples of this are exact in eight bits
    bias = bias.clip(-3, 3)
    net.params["up"][1].data[...] = bias
    actual = net.forward(data=np.ones(shape, np.float32))["up"]
    np.testing.assert_array_equal(actual, np.broadcast_to(bias[:, None, None], actual.shape))
