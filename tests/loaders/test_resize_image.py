"""Linear interpolation as OpenCV does it, against a slow oracle."""

import numpy as np
import pytest

from sparknet.native.decoding import resize_image


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
