"""Resizing: against what OpenCV 5 gave, against Pillow, and against a slow oracle."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import ArrayError, IndexOutOfRange
from sparknet.loaders.resize import resize
from sparknet.native.transform import resample_image, resize_image

OPENCV = np.load(Path(__file__).with_name("opencv_resize.npz"))


@pytest.mark.parametrize("name", [name for name in OPENCV if not name.endswith("_in")])
def test_as_opencv_resizes(name):
    image, way, size = name.split("_")
    height, width = map(int, size.split("x"))
    got = resize(OPENCV[f"{image}_in"], (height, width), f"cv2.{way}")
    assert got.dtype == np.uint8
    # OpenCV's order of sums decides where a mean lies in the middle of two bytes.
    assert np.abs(got.astype(int) - OPENCV[name]).max() <= (way == "area")


@pytest.mark.parametrize("way", ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"])
@pytest.mark.parametrize("channels", [1, 3])
def test_as_pillow_resizes(way, channels):
    image = pytest.importorskip("PIL.Image")
    drawn = np.random.default_rng(0).integers(0, 256, (20, 31, channels)).astype(np.uint8)
    drawn = drawn[..., 0] if channels == 1 else drawn
    wanted = image.fromarray(drawn).resize((9, 40), image.Resampling[way.upper()])
    np.testing.assert_array_equal(resize(drawn, (40, 9), f"pil.{way}"), np.asarray(wanted))
    floats = resize(drawn.astype(np.float32), (40, 9), f"pil.{way}")
    assert floats.dtype == np.float32
    # Bytes are rounded and cut after each axis.
    assert np.abs(floats.clip(0, 255) - np.asarray(wanted)).max() < 2


def _slow(image, size, kernel, reach, bounded):
    """Every output as the sum over the pixels around it, one by one."""
    out = np.zeros((*size, image.shape[2]))
    low = image.min() if bounded else 0.0
    for row, column in np.ndindex(*size):
        y = (row + 0.5) * image.shape[0] / size[0] - 0.5
        x = (column + 0.5) * image.shape[1] / size[1] - 0.5
        for i in range(int(np.floor(y)) - reach + 1, int(np.floor(y)) + reach + 1):
            for j in range(int(np.floor(x)) - reach + 1, int(np.floor(x)) + reach + 1):
                inside = 0 <= i < image.shape[0] and 0 <= j < image.shape[1]
                if inside or not bounded:
                    i_, j_ = np.clip([i, j], 0, np.array(image.shape[:2]) - 1)
                    out[row, column] += kernel(y - i) * kernel(x - j) * (image[i_, j_] - low)
    return (out + low).clip(image.min(), image.max()) if bounded else out


def _hat(t: float) -> float:
    return max(0.0, 1 - abs(t))


def _keys(slope):
    """Keys' cubic kernel (1981)."""

    def kernel(t: float) -> float:
        t = abs(t)
        if t <= 1:
            return (slope + 2) * t**3 - (slope + 3) * t**2 + 1
        return slope * (t**3 - 5 * t**2 + 8 * t - 4) if t < 2 else 0.0

    return kernel


WAYS = {
    "caffe.linear": (_hat, 1, True),
    "caffe.cubic": (_keys(-0.5), 2, True),
    "cv2.linear": (_hat, 1, False),
    "cv2.cubic": (_keys(-0.75), 2, False),
}


@given(
    seed=st.integers(0, 1 << 30),
    old=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    new=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    channels=st.sampled_from([1, 2, 3]),
    way=st.sampled_from(sorted(WAYS)),
)
@settings(max_examples=60, deadline=None)
def test_floats_against_a_slow_oracle(seed, old, new, channels, way):
    image = np.random.default_rng(seed).uniform(-9, 99, (*old, channels)).astype(np.float32)
    got = resize(image, new, way)
    if old == new:
        np.testing.assert_array_equal(got, image)
    else:
        wanted = _slow(image.astype(np.float64), new, *WAYS[way])
        np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-4)


@given(seed=st.integers(0, 1 << 30), height=st.integers(1, 40), width=st.integers(1, 40))
@settings(max_examples=25, deadline=None)
def test_an_area_is_a_mean(seed, height, width):
    """Weighed by how much of each pixel is covered; repeated pixels make all parts whole."""
    image = np.random.default_rng(seed).uniform(0, 255, (height, width)).astype(np.float32)
    size = (max(1, height // 3), max(1, width // 2))
    got = resize(image, size, "cv2.area")
    many = image.astype(np.float64).repeat(size[0], 0).repeat(size[1], 1)
    whole = many.reshape(size[0], height, size[1], width).mean((1, 3))
    np.testing.assert_allclose(got, whole, rtol=0, atol=0.3)


def test_tables_that_lead_outside_are_refused():
    image = np.zeros((4, 5), np.uint8)
    good = np.zeros((2, 1), np.int32), np.ones((2, 1), np.float32)
    for wrong in (-1, 4):
        bad = np.full((2, 1), wrong, np.int32), good[1]
        with pytest.raises(IndexOutOfRange, match="places outside"):
            resample_image(image, bad, good)
    with pytest.raises(ArrayError, match="without pixels"):
        resample_image(image[:0], good, good)


def _exact(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Linear interpolation with pixel centres at halves, in double precision."""

    def axis(size: int, to: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        at = np.clip((np.arange(to) + 0.5) * size / to - 0.5, 0, size - 1)
        low = np.floor(at).astype(int)
        return low, np.minimum(low + 1, size - 1), at - low

    rows, below, v = axis(image.shape[0], height)
    columns, right, u = axis(image.shape[1], width)
    values = image.astype(np.float64)
    u, v = u[:, None], v[:, None, None]
    upper = values[rows][:, columns] * (1 - u) + values[rows][:, right] * u
    lower = values[below][:, columns] * (1 - u) + values[below][:, right] * u
    return np.asarray(upper * (1 - v) + lower * v)


@pytest.mark.parametrize("size", [(5, 7), (12, 15), (13, 4), (24, 30), (1, 1), (6, 15), (40, 3)])
@pytest.mark.parametrize("channels", [1, 3])
def test_within_rounding_of_the_exact_value(size, channels):
    image = np.random.default_rng(1).integers(0, 256, (12, 15, channels)).astype(np.uint8)
    got = resize_image(image, *size)
    assert got.shape == (*size, channels)
    assert np.abs(got - _exact(image, *size)).max() <= 1.0
    flat = resize_image(image[:, :, 0], *size)
    np.testing.assert_array_equal(flat, got[:, :, 0])


def test_the_same_size_is_a_copy_and_half_the_size_an_average():
    image = np.random.default_rng(1).integers(0, 256, (6, 8)).astype(np.uint8)
    np.testing.assert_array_equal(resize_image(image, 6, 8), image)
    sums = image.reshape(3, 2, 4, 2).astype(int).sum((1, 3))
    np.testing.assert_array_equal(resize_image(image, 3, 4), (sums + 2) >> 2)


def test_no_pixels():
    with pytest.raises(ValueError, match="without pixels"):
        resize_image(np.zeros((0, 3), np.uint8), 2, 2)
