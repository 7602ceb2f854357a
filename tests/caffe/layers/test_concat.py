"""Concat, Slice, SizedLike and Resize."""

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import build, check_gradients, run
from tests.caffe.layers.passing import backward, draw, same

CONCAT = (
    'layer {{ name: "l" type: "Concat" bottom: "a" bottom: "b" top: "y" concat_param {{ {} }} }}'
)


def test_one_bottom_shares():
    layer = 'layer { name: "l" type: "Concat" bottom: "a" top: "y" }'
    net = build(layer, {"a": draw(2, 3)})
    assert np.shares_memory(net.blobs["a"].data, net.blobs["y"].data)
    check_gradients(layer, {"a": draw(2, 3)})


def test_empty_part():
    net = run(CONCAT.format("axis: 1"), {"a": draw(2, 0, 3), "b": draw(2, 4, 3)})
    same(net.blobs["y"].data, draw(2, 4, 3), 0, 0)
    backward(net)
    same(net.blobs["b"].diff, net.blobs["y"].diff, 0, 0)


def text(*sizes: str, reshape: bool = False) -> str:
    listed = " ".join(f"size {{ {one} }}" for one in sizes)
    options = f"sized_like_param {{ {listed} reshape: {str(reshape).lower()} }}"
    return f'layer {{ name: "l" type: "SizedLike" bottom: "x" bottom: "r" top: "y" {options} }}'


FIRST, SECOND = "bottom: 1 axis: 0", "bottom: 1 axis: 1"


@pytest.mark.parametrize(
    ("x", "sizes", "want"),
    [
        ((1, 3), (FIRST, "bottom: 0 axis: 1"), (2, 3)),
        ((2, 1, 1, 4), (FIRST, "dim: 3", SECOND, "bottom: 1 axis: -1"), (2, 3, 4, 4)),
        ((7, 6), (FIRST, SECOND), (2, 4)),
        ((1, 7, 9), (FIRST, SECOND, SECOND), (2, 4, 4)),
        ((9, 1), (SECOND, SECOND), (4, 4)),
        ((), (FIRST,), (2,)),
    ],
)
def test_spread_and_cut(x, sizes, want):
    inputs = {"x": draw(*x), "r": draw(2, 4, seed=1)}
    net = run(text(*sizes), inputs)
    lined = (1,) * (len(want) - len(x)) + x
    window = tuple(slice(min(have, size)) for have, size in zip(lined, want, strict=True))
    taken = inputs["x"].reshape(lined)[window]
    same(net.blobs["y"].data, np.broadcast_to(taken, want), 0, 0)
    gradients, diff = backward(net)["y"], np.zeros(lined, np.float32)
    spread = tuple(axis for axis, size in enumerate(lined) if size == 1)
    diff[window] = gradients.sum(spread, keepdims=True)
    same(net.blobs["x"].diff, diff.reshape(x))
    check_gradients(text(*sizes), inputs, of=["x"])


@pytest.mark.parametrize(
    ("sizes", "want"),
    [((FIRST, SECOND, "dim: -1"), (2, 4, 3)), ((SECOND, "dim: 2", "dim: 3"), (4, 2, 3))],
)
def test_reshape(sizes, want):
    inputs = {"x": draw(8, 3), "r": draw(2, 4, seed=1)}
    net = run(text(*sizes, reshape=True), inputs)
    same(net.blobs["y"].data, inputs["x"].reshape(want), 0, 0)
    check_gradients(text(*sizes, reshape=True), inputs, of=["x"])


@pytest.mark.parametrize(
    ("sizes", "reshape", "says"),
    [
        ((FIRST, SECOND), False, "an axis of 4 is wanted, and the model holds values for 3"),
        ((FIRST,), False, "8 x 3 has more axes than 2"),
        ((FIRST, "dim: -1"), False, "one size may be -1, and only with reshape"),
        ((FIRST, "dim: -2"), True, "a size must not be negative; it is -2"),
        (("bottom: 2", FIRST), True, "a size is that of bottom 2; there are 2"),
        ((SECOND, "dim: 5"), True, "8 x 3 does not become 4 x 5"),
        (("bottom: 1 axis: 2",), True, "axis 2 is out of range for the shape 2 x 4"),
    ],
)
def test_refusals(sizes, reshape, says):
    with pytest.raises(LayerError, match=says):
        build(text(*sizes, reshape=reshape), {"x": draw(8, 3), "r": draw(2, 4)})


def upsample(options: str, bottoms: str = "x") -> str:
    below = "".join(f'bottom: "{name}" ' for name in bottoms)
    return (
        f'layer {{ name: "up" type: "Upsample" {below} top: "y" upsample_param {{ {options} }} }}'
    )


def interp(options: str, bottoms: str = "x") -> str:
    below = "".join(f'bottom: "{name}" ' for name in bottoms)
    return f'layer {{ name: "l" type: "Interp" {below} top: "y" interp_param {{ {options} }} }}'


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_repeat(scale):
    x, text = draw(2, 3, 2, 4), upsample(f"scale: {scale}")
    net = run(text, {"x": x})
    same(net.blobs["y"].data, x.repeat(scale, 2).repeat(scale, 3), 0, 0)
    gradients = backward(net)["y"]
    same(net.blobs["x"].diff, gradients.reshape(2, 3, 2, scale, 4, scale).sum((3, 5)))
    check_gradients(text, {"x": x})


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ("scale: 2", (4, 6)),
        ("scale: 2 pad_out_h: true", (3, 6)),
        ("scale_h: 3 scale_w: 2", (6, 6)),
        ("upsample_h: 5 upsample_w: 7", (5, 7)),
    ],
)
def test_unpool(options, size):
    rng = np.random.default_rng(4)
    x, area = draw(2, 2, 2, 3), size[0] * size[1]
    mask = np.stack([rng.permutation(area)[:6] for _ in range(4)]).reshape(2, 2, 2, 3)
    text, inputs = upsample(options, "xm"), {"x": x, "m": mask}
    net = run(text, inputs)
    want = np.zeros((4, area), np.float32)
    np.put_along_axis(want, mask.reshape(4, 6), x.reshape(4, 6), 1)
    same(net.blobs["y"].data, want.reshape(2, 2, *size), 0, 0)
    gradients = backward(net)["y"].reshape(4, area)
    same(net.blobs["x"].diff, np.take_along_axis(gradients, mask.reshape(4, 6), 1).reshape(x.shape))
    assert not net.blobs["m"].diff.any()
    check_gradients(text, inputs, of=["x"])


@pytest.mark.parametrize("value", [24, -1, float("nan")])
def test_mask_out_of_range(value):
    net = build(upsample("scale: 2", "xm"), {"x": draw(1, 1, 2, 3), "m": np.zeros((1, 1, 2, 3))})
    net.blobs["m"].data[0, 0, 1, 1] = value
    with pytest.raises(LayerError, match=r"'up'.*mask's .* out of range"):
        net.forward()


def bilinear(x, size):
    """Aligned corners, one output value after the other."""
    y = np.zeros((*x.shape[:2], *size))
    for i in range(size[0]):
        for j in range(size[1]):
            at = (
                i * (x.shape[2] - 1) / max(size[0] - 1, 1),
                j * (x.shape[3] - 1) / max(size[1] - 1, 1),
            )
            for h in range(x.shape[2]):
                for w in range(x.shape[3]):
                    near = max(0, 1 - abs(at[0] - h)) * max(0, 1 - abs(at[1] - w))
                    y[:, :, i, j] += near * x[:, :, h, w]
    return y


@pytest.mark.parametrize(
    ("options", "size", "crop"),
    [
        ("height: 5 width: 7", (5, 7), (0, 0)),
        ("height: 1 width: 2", (1, 2), (0, 0)),
        ("height: 3 width: 4", (3, 4), (0, 0)),
        ("zoom_factor: 3", (7, 10), (0, 0)),
        ("shrink_factor: 2", (2, 2), (0, 0)),
        ("zoom_factor: 2 pad_beg: -1", (3, 5), (1, 0)),
        ("height: 4 width: 4 pad_beg: -1 pad_end: -1", (4, 4), (1, 1)),
        ("height: 1 width: 2 pad_beg: -1 pad_end: -1", (1, 2), (1, 1)),
    ],
)
def test_interp(options, size, crop):
    x, text = draw(2, 3, 3, 4), interp(options)
    net = run(text, {"x": x})
    inner = x[:, :, crop[0] : 3 - crop[1], crop[0] : 4 - crop[1]]
    same(net.blobs["y"].data, bilinear(inner, size), 1e-4, 1e-5)
    check_gradients(text, {"x": x})


def test_interp_size_from_a_blob():
    inputs = {"x": draw(1, 2, 3, 4), "r": draw(1, 1, 5, 6)}
    net = run(interp("", "xr"), inputs)
    same(net.blobs["y"].data, bilinear(inputs["x"], (5, 6)), 1e-4, 1e-5)
    check_gradients(interp("", "xr"), inputs)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
def test_interp_fewer_axes(shape):
    x = draw(*shape)
    net = run(interp("height: 3 width: 2"), {"x": x})
    same(net.blobs["y"].data, bilinear(x.reshape((*shape, 1, 1, 1)[:4]), (3, 2)), 1e-4, 1e-5)
    check_gradients(interp("height: 3 width: 2"), {"x": x})


def resize(options: str, bottoms: str = "x") -> str:
    below = " ".join(f'bottom: "{one}"' for one in bottoms)
    return (
        f'layer {{ name: "l" type: "Resize" {below} top: "y" resize_image_param {{ {options} }} }}'
    )


@pytest.mark.parametrize(
    "options",
    [
        "height: 5 width: 3",
        "height: 2 width: 9 mode: LINEAR",
        "height: 7 width: 5 mode: LINEAR coordinates: ALIGN_CORNERS",
        "height: 6 width: 7 mode: CUBIC",
        "scale_h: 1.6 scale_w: 0.7 mode: CUBIC exclude_outside: true coordinates: ASYMMETRIC",
        "height: 1 width: 6 mode: LINEAR coordinates: PYTORCH_HALF_PIXEL",
    ],
)
def test_resize_gradient(options):
    """The values are compared with onnxruntime's in tests/onnx."""
    check_gradients(resize(options), {"x": draw(2, 2, 4, 5)})


def test_resize_halves_and_doubles():
    x = draw(1, 2, 4, 6)
    net = run(resize("height: 2 width: 3 mode: LINEAR"), {"x": x})
    same(net.blobs["y"].data, x.reshape(1, 2, 2, 2, 3, 2).mean((3, 5)))
    net = run(resize("scale_h: 2 scale_w: 2"), {"x": x})
    same(net.blobs["y"].data, x.repeat(2, 2).repeat(2, 3), 0, 0)


@pytest.mark.parametrize("mode", ["NEAREST", "LINEAR", "CUBIC"])
def test_resize_to_the_size_of_a_bottom(mode):
    x, like = draw(2, 2, 4, 5), draw(1, 1, 7, 3)
    nets = [
        build(resize(f"mode: {mode}", "xr"), {"x": x, "r": like}),
        build(resize(f"height: 7 width: 3 mode: {mode}"), {"x": x}),
    ]
    for net in nets:
        net.forward()
    same(nets[0].blobs["y"].data, nets[1].blobs["y"].data, 0, 0)
    check_gradients(resize(f"mode: {mode}", "xr"), {"x": x, "r": like})
    with pytest.raises(LayerError, match="second bottom gives the size: give no height or width"):
        build(resize("height: 3", "xr"), {"x": x, "r": like})


def test_resize_without_a_size():
    with pytest.raises(LayerError, match="give width or scale_w"):
        build(resize("height: 3"), {"x": draw(1, 1, 2, 2)})
