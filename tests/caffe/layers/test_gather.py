"""Embed, BatchReindex, Filter, BatchGather, CumSum, GridSample: values picked by their numbers."""

from itertools import product
from math import floor

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import biased, build, check_gradients, run
from tests.caffe.layers.passing import backward, draw, same, set_params

EMBED = (
    'layer {{ name: "emb" type: "Embed" bottom: "x" top: "y" embed_param {{ '
    "input_dim: 5 num_output: 3 bias_term: {} }} }}"
)
LOSS = 'layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }'
REINDEX = biased("x") + (
    'layer { name: "pick" type: "BatchReindex" bottom: "xb" bottom: "i" top: "y" loss_weight: 1 }'
)
FILTER = biased("x", "z") + (
    'layer { name: "keep" type: "Filter" bottom: "xb" bottom: "zb" bottom: "s" '
    'top: "y" top: "w" loss_weight: 1 loss_weight: 1 }'
)
BAD = [5, 7, -1, 1e30, float("nan"), float("inf"), -float("inf")]


@pytest.mark.parametrize("bias", ["true", "false"])
@pytest.mark.parametrize("indices", [[1, 0, 4, 1], [[2, 2], [2, 3]], [1.9, -0.5]])
def test_embed(indices, bias):
    x = np.array(indices, np.float32)
    table, shift = draw(5, 3), draw(3, seed=2)
    net = build(EMBED.format(bias) + LOSS, {"x": x, "t": draw(*x.shape, 3)}, force=False)
    set_params(net, {"emb": [table, shift] if bias == "true" else [table]})
    net.forward()
    rows = np.trunc(x).astype(int)
    same(net.blobs["y"].data, table[rows] + (shift if bias == "true" else 0))
    net.backward()
    given, want = net.blobs["y"].diff, np.zeros_like(table)
    assert given.any()
    np.add.at(want, rows, given)
    same(net.params["emb"][0].diff, want)
    if bias == "true":
        same(net.params["emb"][1].diff, given.reshape(-1, 3).sum(0))


@pytest.mark.parametrize("value", BAD)
def test_embed_refuses(value):
    net = build(EMBED.format("true"), {"x": np.array([1, value], np.float32)}, force=False)
    with pytest.raises(LayerError, match=r"'emb'.*index .* 5 rows"):
        net.forward()
    net.backward()


def test_embed_refuses_a_gradient():
    net = run(EMBED.format("true"), {"x": np.zeros(2)})
    with pytest.raises(LayerError, match=r"'emb'.*no gradient"):
        net.backward()


@pytest.mark.parametrize("indices", [[4, 3, 2, 1, 0], [1, 1, 1, 4, 0, 1], [2], []])
def test_batch_reindex(indices):
    x = draw(5, 2, 3)
    inputs = {"x": x, "i": np.array(indices, np.float32)}
    net = run(REINDEX, inputs, force=False)
    same(net.blobs["y"].data, x[indices], 0, 0)
    gradients, want = backward(net)["y"], np.zeros_like(x)
    np.add.at(want, np.array(indices, int), gradients)
    same(net.blobs["xb"].diff, want)
    check_gradients(REINDEX, inputs, of=[], force=False)


@pytest.mark.parametrize("value", BAD)
def test_batch_reindex_refuses(value):
    net = build(REINDEX, {"x": draw(5, 2), "i": np.array([1, value], np.float32)}, force=False)
    with pytest.raises(LayerError, match=r"'pick'.*index .*5 items"):
        net.forward()
    net.backward()


def test_filter_follows_its_selector():
    x, z = draw(4, 2, 3), draw(4, seed=3)
    net = build(
        FILTER.replace("loss_weight: 1", "loss_weight: 0", 1)
        + 'layer { name: "sum" type: "Reduction" bottom: "y" top: "t" '
        "loss_weight: 1 reduction_param { axis: 1 } }",
        {"x": x, "z": z, "s": np.zeros(4)},
        force=False,
    )
    for marks in (
        [1, 0, -2, 0],
        [1, 1, 1, 1],
        [0, 0, 0, 0],
        [0, 0, 0, 0.5],
        [float("nan"), 0, 1, 0],
    ):
        net.blobs["s"].data[...] = marks
        net.forward()
        kept = np.flatnonzero(np.array(marks))
        same(net.blobs["y"].data, x[kept], 0, 0)
        same(net.blobs["w"].data, z[kept], 0, 0)
        same(net.blobs["t"].data, x[kept].reshape(len(kept), 6).sum(1))
        gradients = backward(net)
        for blob, diff in (("xb", np.repeat(gradients["t"], 6)), ("zb", gradients["w"])):
            want = np.zeros_like(net.blobs[blob].data)
            want[kept] = diff.reshape(want[kept].shape)
            same(net.blobs[blob].diff, want, 0, 0)


def test_filter_gradient():
    inputs = {"x": draw(4, 2), "z": draw(4, 1, 2), "s": np.array([[1], [0], [1], [1]])}
    check_gradients(FILTER, inputs, of=[], force=False)


@pytest.mark.parametrize(
    ("text", "inputs", "message"),
    [
        (REINDEX, {"x": (3, 2), "i": (2,)}, "'pick': BatchReindex: .* the indices, bottom 'i'"),
        (
            FILTER,
            {"x": (3, 2), "z": (3,), "s": (3,)},
            "'keep': Filter: .* the selector, bottom 's'",
        ),
    ],
)
def test_what_selects_has_no_gradient(text, inputs, message):
    """Caffe ends: batch_reindex_layer.cpp and filter_layer.cpp, Backward_cpu."""
    net = run(text, {name: np.ones(shape, np.float32) for name, shape in inputs.items()})
    with pytest.raises(LayerError, match=f"layer {message}; leave force_backward out"):
        net.backward()


def gather(axis: int) -> str:
    return (
        'layer { name: "l" type: "BatchGather" bottom: "x" bottom: "p" top: "y" '
        f"batch_gather_param {{ axis: {axis} }} }}"
    )


@pytest.mark.parametrize(
    ("axis", "shape", "places"),
    [
        (1, (3, 4, 5), (3,)),
        (1, (3, 4), (3, 2)),
        (0, (4, 2), (3,)),
        (-1, (2, 3, 4), (2, 3, 5)),
        (1, (2, 3, 2, 2), (2, 1, 3)),
    ],
)
def test_places(axis, shape, places):
    own = axis % len(shape)
    drawn = np.random.default_rng(3).integers(-shape[own], shape[own], places)
    inputs = {"x": draw(*shape), "p": drawn.astype(np.float32)}
    net = run(gather(axis), inputs)
    want = np.stack(
        [inputs["x"][(*lead[:own], drawn[lead])] for lead in np.ndindex(*places)]
    ).reshape(*places, *shape[own + 1 :])
    same(net.blobs["y"].data, want, 0, 0)
    gradients, diff = backward(net)["y"], np.zeros(shape, np.float32)
    for lead in np.ndindex(*places):
        diff[(*lead[:own], drawn[lead])] += gradients[lead]
    same(net.blobs["x"].diff, diff)
    check_gradients(gather(axis), inputs, of=["x"])


@pytest.mark.parametrize(("place", "says"), [(4, "4"), (-5, "-5"), (np.nan, "nan")])
def test_places_out_of_range(place, says):
    inputs = {"x": draw(2, 4), "p": np.array([0, place], np.float32)}
    net = build(gather(1), inputs)
    with pytest.raises(LayerError, match=f"place {says} is out of range for an axis of 4"):
        net.forward()


def test_places_of_other_records():
    with pytest.raises(LayerError, match="the places 3 have other axes before axis 1 than 2 x 4"):
        build(gather(1), {"x": draw(2, 4), "p": np.zeros(3, np.float32)})


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums(axis, exclusive, reverse):
    options = f"axis: {axis} exclusive: {exclusive} reverse: {reverse}".lower()
    text = (
        f'layer {{ name: "l" type: "CumSum" bottom: "x" top: "y" cum_sum_param {{ {options} }} }}'
    )
    x = draw(2, 3, 4)
    net = run(text, {"x": x})
    turned = np.flip(x, axis) if reverse else x
    want = np.cumsum(turned, axis, np.float64) - (turned if exclusive else 0)
    same(net.blobs["y"].data, (np.flip(want, axis) if reverse else want).astype(np.float32))
    check_gradients(text, {"x": x})


MODES = ("BILINEAR", "NEAREST", "BICUBIC")
PADDINGS = ("ZEROS", "BORDER", "REFLECTION")
KINDS = list(product(MODES, PADDINGS, (False, True)))
SIZES = (4, 5)


def layer(mode: str, padding: str, corners: bool) -> str:
    options = f"mode: {mode} padding_mode: {padding} align_corners: {str(corners).lower()}"
    return (
        'layer { name: "l" type: "GridSample" bottom: "x" bottom: "g" top: "y" '
        f"grid_sample_param {{ {options} }} }}"
    )


def grids(pixels, corners):
    """Places from -1 to 1 of places in pixels (x, y)."""
    sizes = np.array(SIZES[::-1], np.float64)
    found = 2 * pixels / (sizes - 1) - 1 if corners else (2 * pixels + 1) / sizes - 1
    return found.astype(np.float32)


def pixels_of(grid, corners):
    sizes = np.array(SIZES[::-1], np.float64)
    return (grid + 1) / 2 * (sizes - 1) if corners else ((grid + 1) * sizes - 1) / 2


def mirrored(at: float, size: int, corners: bool) -> float:
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    while not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


def padded(at: float, size: int, padding: str, corners: bool) -> float:
    if padding == "REFLECTION":
        at = mirrored(at, size, corners)
    return at if padding == "ZEROS" else min(max(at, 0.0), size - 1.0)


def kernel(far: float) -> float:
    far, a = abs(far), -0.75
    if far <= 1:
        return (a + 2) * far**3 - (a + 3) * far**2 + 1
    return a * far**3 - 5 * a * far**2 + 8 * a * far - 4 * a if far < 2 else 0


def taps(at: float, size: int, mode: str, padding: str, corners: bool) -> list[tuple[int, float]]:
    """Lines and their shares; what is beyond the image has none."""
    if mode == "BICUBIC":
        lines = [(floor(at) + k, kernel(at - floor(at) - k)) for k in range(-1, 3)]
        found = [(round(padded(k, size, padding, corners)), share) for k, share in lines]
    else:
        at = padded(at, size, padding, corners)
        low = floor(at)
        found = [(round(at), 1.0)]
        if mode == "BILINEAR":
            found = [(low, 1 - (at - low)), (low + 1, at - low)]
    return [(line, share) for line, share in found if 0 <= line < size]


def looked_up(x, pixels, mode, padding, corners):
    found = np.zeros((*x.shape[:2], *pixels.shape[1:3]))
    for n, i, j in np.ndindex(*pixels.shape[:3]):
        across, down = pixels[n, i, j]
        for row, high in taps(down, x.shape[2], mode, padding, corners):
            for column, wide in taps(across, x.shape[3], mode, padding, corners):
                found[n, :, i, j] += high * wide * x[n, :, row, column].astype(np.float64)
    return found


@pytest.mark.parametrize(("mode", "padding", "corners"), KINDS)
def test_values_and_gradients(mode, padding, corners):
    """Away from where pixels meet, so that differences are gradients."""
    random = np.random.default_rng(3)
    whole = random.integers(-7, 12, (2, 3, 4, 2))
    pixels = whole + random.choice([0.2, 0.3, 0.7, 0.8], whole.shape)
    inputs = {"x": draw(2, 3, *SIZES), "g": grids(pixels, corners)}
    net = run(layer(mode, padding, corners), inputs)
    want = looked_up(inputs["x"], pixels, mode, padding, corners)
    same(net.blobs["y"].data, want.astype(np.float32), 1e-4, 1e-4)
    check_gradients(layer(mode, padding, corners), inputs, step=4e-3, tolerance=2e-2)


@pytest.mark.parametrize(("mode", "padding", "corners"), KINDS)
def test_any_place(mode, padding, corners):
    """Corners, edges and centres of pixels."""
    grid = np.array([-1, 1, 0, -1.5, 3, 0.25, -0.75, 2.5], np.float32)
    grid = np.stack(np.meshgrid(grid, grid), -1)[np.newaxis]
    x = draw(1, 2, *SIZES)
    net = run(layer(mode, padding, corners), {"x": x, "g": grid})
    want = looked_up(x, pixels_of(grid.astype(np.float64), corners), mode, padding, corners)
    same(net.blobs["y"].data, want.astype(np.float32), 1e-4, 1e-5)


def test_places_that_are_no_numbers():
    """Nowhere is zero, or some pixel of the image; the gradient is zero."""
    grid = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    grid = np.stack([grid, np.zeros(4, np.float32)], -1)[np.newaxis, np.newaxis]
    for mode, padding, corners in KINDS:
        net = run(layer(mode, padding, corners), {"x": np.ones((1, 1, 3, 3)), "g": grid})
        want = np.full((1, 1, 1, 4), 0 if padding == "ZEROS" else 1, np.float32)
        same(net.blobs["y"].data, want)
        net.blobs["y"].diff[...] = 1
        net.backward()
        assert np.isfinite(net.blobs["x"].diff).all()
        assert not net.blobs["g"].diff[..., 0].any()


@pytest.mark.parametrize("shape", [(2, 5, 2), (2, 5, 5, 3), (1, 5, 5, 2)])
def test_a_grid_of_another_shape(shape):
    with pytest.raises(LayerError, match="it needs 2 x height x width x 2 for images of 2 x 3 x 4"):
        build(layer(*KINDS[0]), {"x": draw(2, 3, 4, 5), "g": draw(*shape)})


def test_an_image_without_pixels():
    with pytest.raises(LayerError, match="an image of 0 x 5 has no pixel to look up"):
        build(layer(*KINDS[0]), {"x": draw(2, 3, 0, 5), "g": draw(2, 1, 1, 2)})
