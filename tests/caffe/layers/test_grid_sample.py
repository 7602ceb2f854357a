"""GridSample against loops over pixels in float64, and finite differences."""

from __future__ import annotations

from itertools import product
from math import floor
from typing import Any

import numpy as np
import pytest

from sparknet.errors import LayerError
from tests.caffe.gradient import check_gradients
from tests.caffe.layers.passing import build, draw, same

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


def grids(pixels: Any, corners: bool) -> Any:
    """Places from -1 to 1 of places in pixels (x, y)."""
    sizes = np.array(SIZES[::-1], np.float64)
    found = 2 * pixels / (sizes - 1) - 1 if corners else (2 * pixels + 1) / sizes - 1
    return found.astype(np.float32)


def pixels_of(grid: Any, corners: bool) -> Any:
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


def looked_up(x: Any, pixels: Any, mode: str, padding: str, corners: bool) -> Any:
    found = np.zeros((*x.shape[:2], *pixels.shape[1:3]))
    for n, i, j in np.ndindex(*pixels.shape[:3]):
        across, down = pixels[n, i, j]
        for row, high in taps(down, x.shape[2], mode, padding, corners):
            for column, wide in taps(across, x.shape[3], mode, padding, corners):
                found[n, :, i, j] += high * wide * x[n, :, row, column].astype(np.float64)
    return found


@pytest.mark.parametrize(("mode", "padding", "corners"), KINDS)
def test_values_and_gradients(mode: str, padding: str, corners: bool) -> None:
    """Away from where pixels meet, so that differences are gradients."""
    random = np.random.default_rng(3)
    whole = random.integers(-7, 12, (2, 3, 4, 2))
    pixels = whole + random.choice([0.2, 0.3, 0.7, 0.8], whole.shape)
    inputs = {"x": draw(2, 3, *SIZES), "g": grids(pixels, corners)}
    net = build(layer(mode, padding, corners), inputs)
    net.forward()
    want = looked_up(inputs["x"], pixels, mode, padding, corners)
    same(net.blobs["y"].data, want.astype(np.float32), 1e-4, 1e-4)
    check_gradients(layer(mode, padding, corners), inputs, step=4e-3, tolerance=2e-2)


@pytest.mark.parametrize(("mode", "padding", "corners"), KINDS)
def test_any_place(mode: str, padding: str, corners: bool) -> None:
    """Corners, edges and centres of pixels."""
    grid = np.array([-1, 1, 0, -1.5, 3, 0.25, -0.75, 2.5], np.float32)
    grid = np.stack(np.meshgrid(grid, grid), -1)[np.newaxis]
    x = draw(1, 2, *SIZES)
    net = build(layer(mode, padding, corners), {"x": x, "g": grid})
    net.forward()
    want = looked_up(x, pixels_of(grid.astype(np.float64), corners), mode, padding, corners)
    same(net.blobs["y"].data, want.astype(np.float32), 1e-4, 1e-5)


def test_places_that_are_no_numbers() -> None:
    """Nowhere is zero, or some pixel of the image; the gradient is zero."""
    grid = np.array([np.nan, np.inf, -np.inf, 1e30], np.float32)
    grid = np.stack([grid, np.zeros(4, np.float32)], -1)[np.newaxis, np.newaxis]
    for mode, padding, corners in KINDS:
        net = build(layer(mode, padding, corners), {"x": np.ones((1, 1, 3, 3)), "g": grid})
        net.forward()
        want = np.full((1, 1, 1, 4), 0 if padding == "ZEROS" else 1, np.float32)
        same(net.blobs["y"].data, want)
        net.blobs["y"].diff[...] = 1
        net.backward()
        assert np.isfinite(net.blobs["x"].diff).all()
        assert not net.blobs["g"].diff[..., 0].any()


@pytest.mark.parametrize("shape", [(2, 5, 2), (2, 5, 5, 3), (1, 5, 5, 2)])
def test_a_grid_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(LayerError, match="it needs 2 x height x width x 2 for images of 2 x 3 x 4"):
        build(layer(*KINDS[0]), {"x": draw(2, 3, 4, 5), "g": draw(*shape)})


def test_an_image_without_pixels() -> None:
    with pytest.raises(LayerError, match="an image of 0 x 5 has no pixel to look up"):
        build(layer(*KINDS[0]), {"x": draw(2, 3, 0, 5), "g": draw(2, 1, 1, 2)})
