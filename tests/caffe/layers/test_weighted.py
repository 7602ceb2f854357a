"""Gradients of the layers that multiply by weights, by finite differences, for every option."""

import numpy as np
import pytest

from tests.caffe.gradient import build
from tests.caffe.layers.passing import backward


def values(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(5).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("kind", ["Convolution", "Deconvolution"])
@pytest.mark.filterwarnings("ignore:.*bfloat16")
def test_taps_that_see_nothing_learn_nothing(kind, precision):
    """Another layer's gradients of the same size have just been in the memory that they take."""
    options = "num_output: 16 kernel_size: 5 pad: 2 stride: 2 weight_filler { type: 'xavier' }"
    layers = "".join(
        f"layer {{ name: 'l{bottom}' type: '{kind}' bottom: '{bottom}' top: 'y{bottom}' "
        f"convolution_param {{ {options} }} }}"
        for bottom in ("narrow", "square")
    )
    net = build(
        layers,
        {"narrow": values((2, 16, 8, 1)), "square": values((2, 16, 8, 8))},
        precision=precision,
    )
    for _ in range(2):
        net.forward()
        backward(net)
        actual = net.params["lnarrow"][0].diff
        assert actual[..., 2].any()
        assert not actual[..., [0, 1, 3, 4]].any()


def test_an_empty_result_asks_nothing_of_its_input():
    window = "kernel_size: 3 pad: 1 dilation: 2 stride: 2"
    net = build(
        f"layer {{ name: 'l' type: 'Convolution' bottom: 'x' top: 'y' "
        f"convolution_param {{ num_output: 2 {window} }} }}",
        {"x": values((2, 3, 9, 1))},
    )
    assert net.forward()["y"].shape == (2, 2, 4, 0)
    net.blobs["x"].diff[...] = 3
    backward(net)
    assert not net.blobs["x"].diff.any()
