"""PReLU: values and gradients for every option and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet.native import set_threads, threads
from tests.caffe.gradient import check_gradients, make_net

SHARED = "prelu_param { channel_shared: true }"
COPY = 'layer { name: "copy" type: "Power" bottom: "x" top: "c" }\n'


def layer(options: str = "", bottom: str = "x", top: str = "y") -> str:
    return f'layer {{ name: "l" type: "PReLU" bottom: "{bottom}" top: "{top}" {options} }}\n'


def values(*shape: int) -> Any:
    rng = np.random.default_rng(7)
    return rng.uniform(0.1, 2, shape) * rng.choice([-1, 1], shape)


@pytest.mark.parametrize("options", ["", SHARED])
@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 5), (2, 3, 2, 2)])
def test_gradient(options: str, shape: tuple[int, ...]) -> None:
    x = values(*shape)
    slopes = np.array(0.3) if options else np.linspace(-0.5, 0.7, shape[1])
    for text in (layer(options), COPY + layer(options, "c", "c")):
        net = make_net(text, {"x": x})
        net.params["l"][0].data[...] = slopes
        net.forward()
        wide = np.reshape(slopes, (-1,) + (1,) * (len(shape) - 2))
        want = np.where(x > 0, x, wide * x)
        np.testing.assert_allclose(net.blobs[net.outputs[0]].data, want, rtol=1e-6)
        check_gradients(text, {"x": x}, {"l": [slopes]}, kinks=(0,))


@pytest.mark.parametrize("channels", [3, 16, 20])
@pytest.mark.parametrize("options", ["", SHARED])
def test_behind_a_convolution(channels: int, options: str) -> None:
    rng = np.random.default_rng(channels)
    text = (
        'layer { name: "conv" type: "Convolution" bottom: "x" top: "c" convolution_param { '
        f"num_output: {channels} kernel_size: 3 "
        'weight_filler { type: "gaussian" std: 0.4 } } }\n'
        + layer(options, "c")
        + 'layer { name: "conv2" type: "Convolution" bottom: "y" top: "z" convolution_param { '
        'num_output: 2 kernel_size: 1 weight_filler { type: "gaussian" std: 1 } } }\n'
    )
    net = make_net(text, {"x": rng.normal(size=(3, 4, 7, 6))})
    slopes = rng.normal(size=net.params["l"][0].data.shape)
    net.params["l"][0].data[...] = slopes
    net.forward()
    c, y = np.array(net.blobs["c"].data), np.array(net.blobs["y"].data)
    wide = np.reshape(slopes, (-1, 1, 1)).astype(np.float32)
    np.testing.assert_allclose(y, np.where(c > 0, c, wide * c), rtol=1e-6)
    net.blobs["z"].diff[...] = rng.normal(size=net.blobs["z"].data.shape)
    net.backward()
    dy = np.array(net.blobs["y"].diff)
    want = np.where(c > 0, dy, wide * dy)
    np.testing.assert_allclose(net.blobs["c"].diff, want, rtol=1e-5, atol=1e-6)
    axes = None if options else (0, 2, 3)
    sums = np.sum(np.where(c > 0, 0, c * dy).astype(np.float64), axis=axes)
    np.testing.assert_allclose(net.params["l"][0].diff, sums, rtol=1e-4, atol=1e-4)


def test_gradients_of_slopes_add_up_alike_for_any_number_of_threads() -> None:
    x = values(9, 5, 60, 60)
    net = make_net(layer(), {"x": x})
    before, found = threads(), []
    try:
        for number in (1, 2, 3):
            set_threads(number)
            net.forward()
            net.blobs["y"].diff[...] = np.sin(x)
            net.clear_param_diffs()
            net.backward()
            once = np.array(net.params["l"][0].diff)
            net.backward()
            np.testing.assert_allclose(net.params["l"][0].diff, 2 * once, rtol=1e-6)
            found.append((once, np.array(net.blobs["x"].diff)))
    finally:
        set_threads(before)
    for slopes, dx in found[1:]:
        assert np.array_equal(slopes, found[0][0])
        assert np.array_equal(dx, found[0][1])
