"""Small layers and fields of forks: Reorg, Flip, SpatialDropout, scale_train, normalize."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.oracle import layer_text, passes
from tests.caffe.layers.passing import backward, build, draw, same, set_params


def reorganised(x: Any, stride: int, reverse: bool) -> Any:
    """Darknet's reorg_cpu: the sizes of the input are those of the side with more channels."""
    num, channels, high, wide = x.shape
    out = channels // stride**2
    y = np.zeros_like(x)
    for n, c, h, w in np.ndindex(*x.shape):
        offset = c // out
        row, column = h * stride + offset // stride, w * stride + offset % stride
        far = column + wide * stride * (row + high * stride * (c % out + out * n))
        near = w + wide * (h + high * (c + channels * n))
        if reverse:
            y.ravel()[far] = x.ravel()[near]
        else:
            y.ravel()[near] = x.ravel()[far]
    size = (high * stride, wide * stride) if reverse else (high // stride, wide // stride)
    return y.reshape(num, -1, *size)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "stride"), [((2, 8, 4, 6), 2), ((1, 9, 3, 3), 3)])
def test_reorg(reverse: bool, shape: tuple[int, ...], stride: int) -> None:
    x = draw(*shape)
    text = layer_text(
        "Reorg", f"reorg_param {{ stride: {stride} reverse: {str(reverse).lower()} }}"
    )
    net = build(text, {"x": x})
    net.forward()
    same(net.blobs["y"].data, reorganised(x, stride, reverse), 0, 0)
    backward(net)
    check_gradients(text, {"x": x[:1, : 2 * stride**2, :stride, :stride]})


def test_reorg_that_does_not_divide() -> None:
    with pytest.raises(LayerError, match="the 6 channels do not divide by the stride's square, 4"):
        build(layer_text("Reorg", "reorg_param { stride: 2 }"), {"x": draw(1, 6, 4, 4)})


@pytest.mark.parametrize(
    ("words", "axes"),
    [("", 3), ("flip_width: false flip_height: true", 2), ("flip_height: true", (2, 3))],
)
def test_flip(words: str, axes: Any) -> None:
    x, text = draw(2, 3, 4, 5), layer_text("Flip", f"flip_param {{ {words} }}")
    net = build(text, {"x": x})
    net.forward()
    same(net.blobs["y"].data, np.flip(x, axes), 0, 0)
    given = backward(net)["y"]
    same(net.blobs["x"].diff, np.flip(given, axes), 0, 0)


def test_spatial_dropout_drops_whole_channels() -> None:
    x = np.abs(draw(8, 64, 3, 3)) + 1
    text = layer_text("SpatialDropout", "dropout_param { dropout_ratio: 0.25 }")
    y, dy, net = passes(text, {"x": x})
    kept = (y != 0).reshape(512, 9)
    assert (kept.all(1) | ~kept.any(1)).all()
    assert 0.65 < kept[:, 0].mean() < 0.85
    mask = (y != 0) / 0.75
    same(y, x * mask, 1e-5, 1e-6)
    same(net.blobs["x"].diff, dy * mask, 1e-5, 1e-6)
    same(passes(text, {"x": x}, phase=1)[0], x, 0, 0)


@pytest.mark.parametrize("phase", [0, 1])
def test_spatial_dropout_in_place_behind_a_convolution(phase: int) -> None:
    """A convolution leaves its values in blocks of channels."""
    conv = (
        'layer { name: "conv" type: "Convolution" bottom: "x" top: "c" '
        "convolution_param { num_output: 16 kernel_size: 3 } }\n"
    )
    drop = 'layer { name: "drop" type: "SpatialDropout" bottom: "c" top: "c" }\n'
    x, weights = draw(2, 16, 7, 7), draw(16, 16, 3, 3, seed=1)
    found = []
    for text in (conv, conv + drop):
        net = build(text, {"x": x}, phase=phase)
        set_params(net, {"conv": [weights, np.zeros(16, np.float32)]})
        net.forward()
        found.append(net.blobs["c"].data.copy())
    want, got = found
    by = 1 if phase else np.where(got.any((2, 3), keepdims=True), 2, 0)
    same(got, want * by, 1e-5, 1e-5)


@pytest.mark.parametrize("kind", ["Dropout", "SpatialDropout"])
@pytest.mark.parametrize("top", ["x", "y"])
def test_scale_train_false(kind: str, top: str) -> None:
    """The values that stay are as they are; in TEST all of them shrink (R-FCN)."""
    options = "dropout_param { dropout_ratio: 0.25 scale_train: false }"
    own = 'layer { name: "copy" type: "Power" bottom: "i" top: "x" }\n'
    x = np.abs(draw(4, 16, 2, 2)) + 1
    y, dy, net = passes(own + layer_text(kind, options, top=top), {"i": x}, top=top)
    same(y, np.where(y != 0, x, 0), 1e-6)
    same(net.blobs["i"].diff, np.where(y != 0, dy, 0), 1e-6)
    y, dy, net = passes(own + layer_text(kind, options, top=top), {"i": x}, top=top, phase=1)
    same(y, x * 0.75, 1e-6)
    same(net.blobs["i"].diff, dy * 0.75, 1e-6)


def test_values_are_dropped_in_the_test_phase_where_segnet_says_so() -> None:
    text = layer_text("Dropout", "dropout_param { sample_weights_test: true }")
    y = passes(text, {"x": np.ones((10, 100), np.float32)}, phase=1)[0]
    assert set(np.unique(y)) == {0.0, 2.0}


def test_rows_of_weights_with_length_one() -> None:
    x, weights = draw(3, 5), draw(4, 5, seed=2) * 3
    text = layer_text(
        "InnerProduct", "inner_product_param { num_output: 4 normalize: true bias_term: false }"
    )
    net = build(text, {"x": x})
    set_params(net, {"l": [weights]})
    net.forward()
    rows = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    same(net.params["l"][0].data, rows, 1e-5)
    same(net.blobs["y"].data, x @ rows.T, 1e-4, 1e-5)
    given = backward(net)["y"]
    same(net.blobs["x"].diff, given @ rows, 1e-4, 1e-5)
    same(net.params["l"][0].diff, given.T @ x, 1e-4, 1e-5)
