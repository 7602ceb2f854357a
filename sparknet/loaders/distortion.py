"""SSD's random changes of an image's light and colours (im_transforms.cpp, ApplyDistort)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]


def distort(image: Array, how: caffe_pb2.DistortionParameter, rng: np.random.Generator) -> Array:
    """Brightness, contrast, saturation and hue of height x width x BGR bytes, each by chance.

    Contrast comes second or last, with equal chances.
    """
    contrast_first = rng.random() > 0.5
    image = _brightness(image, how, rng)
    if contrast_first:
        image = _contrast(image, how, rng)
    image = _colours(image, how, rng)
    if not contrast_first:
        image = _contrast(image, how, rng)
    if rng.random() < how.random_order_prob:
        image = image[:, :, rng.permutation(image.shape[2])]
    return image


def _bytes(values: Array) -> Array:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _brightness(
    image: Array, how: caffe_pb2.DistortionParameter, rng: np.random.Generator
) -> Array:
    if rng.random() >= how.brightness_prob:
        return image
    delta = rng.uniform(-how.brightness_delta, how.brightness_delta)
    return _bytes(image + np.float32(delta))


def _contrast(image: Array, how: caffe_pb2.DistortionParameter, rng: np.random.Generator) -> Array:
    if rng.random() >= how.contrast_prob:
        return image
    return _bytes(image * np.float32(rng.uniform(how.contrast_lower, how.contrast_upper)))


def _colours(image: Array, how: caffe_pb2.DistortionParameter, rng: np.random.Generator) -> Array:
    """Saturation, then hue; each on OpenCV's bytes, of which hue's are half degrees."""
    saturates, turns = rng.random() < how.saturation_prob, rng.random() < how.hue_prob
    by = np.float32(rng.uniform(how.saturation_lower, how.saturation_upper))
    delta = np.float32(rng.uniform(-how.hue_delta, how.hue_delta))
    if image.shape[2] != 3:
        return image
    if saturates:
        hue, saturation, value = hsv(image)
        image = bgr(hue, _bytes(saturation * by), value)
    if turns:
        hue, saturation, value = hsv(image)
        image = bgr(_bytes(hue + delta), saturation, value)
    return image


def hsv(image: Array) -> tuple[Array, Array, Array]:
    """Hue, saturation and value, as bytes (OpenCV: COLOR_BGR2HSV)."""
    blue, green, red = (image[:, :, c].astype(np.float32) for c in range(3))
    value = np.maximum(np.maximum(blue, green), red)
    spread = value - np.minimum(np.minimum(blue, green), red)
    some = np.where(spread > 0, spread, 1)
    hue = np.where(
        value == red,
        (green - blue) / some,
        np.where(value == green, 2 + (blue - red) / some, 4 + (red - green) / some),
    )
    hue = np.rint(np.where(spread > 0, hue * 30, 0)) % 180
    saturation = spread * 255 / np.where(value > 0, value, 1)
    return _bytes(hue), _bytes(saturation), _bytes(value)


def bgr(hue: Array, saturation: Array, value: Array) -> Array:
    """The image of such bytes (OpenCV: COLOR_HSV2BGR)."""
    sector = (hue.astype(np.float32) / 30) % 6
    share, full = saturation.astype(np.float32) / 255, value.astype(np.float32)
    planes = []
    for shift in (1, 3, 5):  # blue, green, red
        k = (shift + sector) % 6
        planes.append(full - full * share * np.clip(np.minimum(k, 4 - k), 0, 1))
    return _bytes(np.stack(planes, 2))
