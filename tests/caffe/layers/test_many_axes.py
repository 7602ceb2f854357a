"""Im2col, convolution over more axes than oneDNN has, and Deconvolution at published sizes."""

import numpy as np
import pytest

from tests.caffe.gradient import check_gradients
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
