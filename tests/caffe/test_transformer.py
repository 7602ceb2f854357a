from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparknet.caffe.io import Transformer, resize_image
from sparknet.errors import SparkNetError


@pytest.fixture
def transformer() -> Transformer:
    return Transformer({"data": (10, 3, 4, 5)})


def test_the_image_is_left_alone(transformer: Transformer) -> None:
    transformer.set_raw_scale("data", 255)
    image = np.ones((4, 5, 3), np.float32)
    assert (transformer.preprocess("data", image) == 255).all()
    assert (image == 1).all()


def test_resizing(transformer: Transformer) -> None:
    image = np.random.default_rng(0).random((9, 8, 3))
    got = transformer.preprocess("data", image)
    assert np.array_equal(got, resize_image(image.astype(np.float32), (4, 5)))
    listed = Transformer({"data": [10, 3, 9, 8]})
    assert np.array_equal(listed.preprocess("data", image), image.astype(np.float32))


def test_order_of_the_steps(transformer: Transformer) -> None:
    image = np.random.default_rng(0).random((4, 5, 3)).astype(np.float32)
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_channel_swap("data", (1, 2, 0))
    transformer.set_raw_scale("data", 2.0)
    transformer.set_mean("data", np.array([1.0, 2, 3]))
    transformer.set_input_scale("data", 0.5)
    got = transformer.preprocess("data", image)
    assert np.allclose(got[0], (image[..., 1] * 2 - 1) * 0.5)
    assert np.allclose(got[2], (image[..., 0] * 2 - 3) * 0.5)
    assert np.allclose(transformer.deprocess("data", got[None]), image, atol=1e-6)


def test_a_mean_for_every_channel_alike(transformer: Transformer) -> None:
    gray = Transformer({"data": (1, 1, 4, 5)})
    gray.set_transpose("data", (2, 0, 1))
    gray.set_mean("data", np.full((4, 5), 0.25))
    assert (gray.preprocess("data", np.ones((4, 5, 1))) == 0.75).all()


@pytest.mark.parametrize("shape", [(3, 9, 7), (1, 9, 7), (9, 7), (1, 4, 5), (4, 5)])
def test_a_mean_of_another_size_is_resized(
    transformer: Transformer, shape: tuple[int, ...]
) -> None:
    """The everyday case: a mean of 256 x 256 for an input of 227 x 227."""
    mean = np.random.default_rng(1).uniform(90, 130, shape)
    transformer.set_transpose("data", (2, 0, 1))
    transformer.set_mean("data", mean)
    whole = mean.reshape(-1, *shape[-2:]).transpose(1, 2, 0)
    low, high = whole.min(), whole.max()
    want = resize_image((whole - low) / (high - low), (4, 5)) * (high - low) + low
    got = transformer.preprocess("data", np.zeros((4, 5, 3)))
    np.testing.assert_allclose(got, np.broadcast_to(-want.transpose(2, 0, 1), (3, 4, 5)), rtol=1e-5)


def test_a_constant_mean_of_another_size(transformer: Transformer) -> None:
    transformer.set_mean("data", np.full((3, 9, 7), 104.0))
    assert transformer.mean["data"].shape == (3, 4, 5)
    assert (transformer.mean["data"] == 104).all()


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("transpose", (0, 1), "a transpose order of 3 axes"),
        ("transpose", (0, 1, 1), "a transpose order of 3 axes"),
        ("channel_swap", (0, 1), "an order of 3 channels"),
        ("channel_swap", (0, 1, 3), "an order of 3 channels"),
        ("mean", np.zeros(4), r"a mean of shape \(4,\)"),
        ("mean", np.zeros(1), r"a mean of shape \(1,\)"),
        ("mean", np.zeros((4, 4, 5)), r"a mean of shape \(4, 4, 5\)"),
        ("mean", np.zeros(()), r"a mean of shape \(\)"),
        ("mean", np.zeros((1, 3, 4, 5)), "a mean of shape"),
    ],
)
def test_refused_settings(transformer: Transformer, setting: str, value: Any, message: str) -> None:
    with pytest.raises(SparkNetError, match=f"input 'data'.*{message}") as caught:
        getattr(transformer, f"set_{setting}")("data", value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("setting", ["transpose", "channel_swap", "mean", "raw_scale"])
def test_unknown_inputs(transformer: Transformer, setting: str) -> None:
    with pytest.raises(SparkNetError, match=r"'dat' is not an input of the net.*'data'"):
        getattr(transformer, f"set_{setting}")("dat", (1, 2, 3))
    with pytest.raises(SparkNetError, match="'dat' is not an input"):
        transformer.preprocess("dat", np.zeros((4, 5, 3)))


def test_a_mean_that_does_not_meet_the_image(transformer: Transformer) -> None:
    transformer.set_mean("data", np.zeros(3))
    with pytest.raises(SparkNetError, match="a mean of shape"):
        transformer.preprocess("data", np.zeros((4, 5, 3)))
