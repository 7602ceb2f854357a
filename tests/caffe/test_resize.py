"""Expected values are scikit-image's (mode 'constant', no smoothing) and scipy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sparknet.caffe.io import resize_image
from sparknet.errors import ArrayError


def ramp(channels: int) -> Any:
    return np.tile(np.array([[0.0, 10.0], [20.0, 30.0]], np.float32)[..., None], channels)


def test_linear_is_dark_beyond_the_border() -> None:
    row = resize_image(ramp(1), (4, 4))[1, :, 0]
    assert row.tolist() == [3.75, 7.5, 12.5, 11.25]
    assert resize_image(ramp(3), (4, 4)).dtype == np.float32


def test_other_channel_counts_align_corners() -> None:
    assert resize_image(ramp(2), (2, 3))[0, :, 1].tolist() == [0.0, 5.0, 10.0]
    assert resize_image(ramp(2), (1, 1))[0, 0].tolist() == [0.0, 0.0]
    assert resize_image(ramp(4), (2, 4), 0)[1, :, 3].tolist() == [20.0, 20.0, 30.0, 30.0]


def test_the_same_size_is_the_same_image() -> None:
    image = np.random.default_rng(0).normal(size=(5, 7, 3)).astype(np.float32)
    for order in (0, 1, 3):
        assert np.allclose(resize_image(image, (5, 7), order), image, atol=1e-6)


def test_a_flat_image() -> None:
    out = resize_image(np.full((2, 2, 3), 7.5), (3, 5))
    assert out.shape == (3, 5, 3)
    assert (out == 7.5).all()


def test_the_range_is_kept() -> None:
    image = np.random.default_rng(1).uniform(-3, 9, (6, 5, 3))
    for order in (0, 1, 3):
        out = resize_image(image, (11, 4), order)
        assert image.min() - 1e-6 <= out.min()
        assert out.max() <= image.max() + 1e-6


def test_cubic_and_nearest() -> None:
    line = np.repeat(np.array([0.0, 1, 4, 9, 16, 25]).reshape(1, 6, 1), 9, 0)
    half = resize_image(line, (9, 3), 3)[4, :, 0]
    assert half[1] == (-1 + 9 * 4 + 9 * 9 - 16) / 16
    assert resize_image(line, (9, 3), 0)[4, :, 0].tolist() == [1.0, 9.0, 25.0]


@pytest.mark.parametrize(
    ("shape", "dims", "order"),
    [
        ((2, 2), (3, 3), 1),
        ((2, 0, 3), (3, 3), 1),
        ((2, 2, 3), (3,), 1),
        ((2, 2, 3), (0, 3), 1),
        ((2, 2, 3), (3, 3), 2),
        ((2, 2, 4), (3, 3), 3),
    ],
)
def test_refusals(shape: tuple[int, ...], dims: Sequence[int], order: int) -> None:
    with pytest.raises(ArrayError, match="resize_image"):
        resize_image(np.zeros(shape), dims, order)
