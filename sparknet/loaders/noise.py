"""SSD's changes of all images of a source (im_transforms.cpp, ApplyNoise), as OpenCV makes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.loaders.distortion import hsv
from sparknet.loaders.image import decode, encode
from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]
BLUR = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2))
STEP = 64
"""Between the tones of a posterized image."""
GREY = np.array([0.114, 0.587, 0.299])
"""Of blue, green and red."""


def add_noise(image: Array, how: caffe_pb2.NoiseParameter, rng: np.random.Generator) -> Array:
    """An image of height x width x channels bytes, changed by each option that is on, in the fork's
    order.  As there, `prob` says nothing."""
    if how.decolorize and image.shape[2] == 3:
        image = np.repeat(_bytes(image @ GREY)[:, :, None], 3, 2)
    if how.gauss_blur:
        image = blurred(image)
    if how.hist_eq:
        image = equalized(image)
    if how.jpeg > 0:
        image = _by_jpeg(image, int(min(how.jpeg, 100)))
    if how.erode:
        image = eroded(image)
    if how.posterize:
        image = image // STEP * STEP + STEP // 2
    if how.inverse:
        image = 255 - image
    if how.saltpepper:
        image = _salted(image, how.saltpepper_param, rng)
    if how.convert_to_hsv and image.shape[2] == 3:
        image = np.stack(hsv(image), -1)
    return np.ascontiguousarray(image, np.uint8)


def blurred(image: Array) -> Array:
    """By a Gaussian of 7 x 7 with a deviation of 1.5; the border is mirrored."""
    weights = BLUR / BLUR.sum()
    values = image.astype(np.float64)
    for axis in (0, 1):
        room = [(0, 0)] * 3
        room[axis] = (3, 3)
        wide = np.pad(values, room, "reflect" if values.shape[axis] > 3 else "edge")
        parts = np.lib.stride_tricks.sliding_window_view(wide, 7, axis)
        values = parts @ weights
    return _bytes(values)


def equalized(image: Array) -> Array:
    """With all tones equally often; of colours the light alone."""
    if image.shape[2] != 3:
        return _equalized_plane(image[:, :, 0])[:, :, None]
    blue, green, red = np.moveaxis(image.astype(np.float64), -1, 0)
    light = _bytes(image @ GREY)
    of_red = _bytes((red - light) * 0.713 + 128) - 128.0
    of_blue = _bytes((blue - light) * 0.564 + 128) - 128.0
    even = _equalized_plane(light).astype(np.float64)
    green = even - 0.714 * of_red - 0.344 * of_blue
    return _bytes(np.stack([even + 1.773 * of_blue, green, even + 1.403 * of_red], -1))


def _equalized_plane(plane: Array) -> Array:
    counts = np.bincount(plane.ravel(), minlength=256)
    first = int(np.flatnonzero(counts)[0])
    left = plane.size - counts[first]
    if not left:
        return plane
    sums = np.cumsum(np.where(np.arange(256) > first, counts, 0))
    return np.asarray(_bytes(sums * np.float32(255 / left))[plane])


def eroded(image: Array) -> Array:
    """Each pixel the smallest of itself and its four neighbours."""
    wide = np.pad(image, ((1, 1), (1, 1), (0, 0)), constant_values=255)
    near = (wide[1:-1, 1:-1], wide[:-2, 1:-1], wide[2:, 1:-1], wide[1:-1, :-2], wide[1:-1, 2:])
    return np.asarray(np.minimum.reduce(near))


def _by_jpeg(image: Array, quality: int) -> Array:
    name = "an image of noise_param's jpeg"
    packed = encode(image.transpose(2, 0, 1), "jpg", name, quality)
    return np.asarray(decode(packed, name, None).transpose(1, 2, 0))


def _salted(image: Array, how: caffe_pb2.SaltPepperParameter, rng: np.random.Generator) -> Array:
    high, wide, channels = image.shape
    many = int(how.fraction * high * wide)
    rows, columns = rng.integers(0, high, many), rng.integers(0, wide, many)
    found = image.copy()
    value = np.array(how.value, np.float64) % 256
    found[rows, columns] = np.broadcast_to(value.astype(np.uint8), (channels,))
    return np.asarray(found)


def check(how: caffe_pb2.NoiseParameter, channels: int) -> str | None:
    """Why an image cannot be changed so; None where it can."""
    if how.clahe or how.convert_to_lab:
        return "noise_param's clahe and convert_to_lab are not supported: leave them out"
    pepper = how.saltpepper_param
    if how.saltpepper and len(pepper.value) not in (1, channels):
        return (
            f"saltpepper_param needs one value, or one for each of {channels} channels; "
            f"there are {len(pepper.value)}"
        )
    if how.saltpepper and not 0 <= pepper.fraction <= 1:
        return f"saltpepper_param's fraction must be from 0 to 1; it is {pepper.fraction:g}"
    return None


def _bytes(values: Array) -> Array:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
