"""SSD's random changes of images, noise and distortion (im_transforms.cpp), as OpenCV has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.loaders.image_decoding import decode, encode
from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]
BLUR = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2))
STEP = 64
"""Between the tones of a posterized image."""
GREY = np.array([0.114, 0.587, 0.299])
"""Of blue, green and red."""


def add_noise(image: Array, how: caffe_pb2.NoiseParameter, rng: np.random.Generator) -> Array:
    """Return an image of height x width x channels bytes, changed by each option that is on, in
    the fork's order.  As there, `prob` says nothing.
    """
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
    rest = plane.size - counts[first]
    if not rest:
        return plane
    sums = np.cumsum(np.where(np.arange(256) > first, counts, 0))
    return np.asarray(_bytes(sums * np.float32(255 / rest))[plane])


def eroded(image: Array) -> Array:
    """Return each pixel the smallest of itself and its four neighbours."""
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
    copy = image.copy()
    value = np.array(how.value, np.float64) % 256
    copy[rows, columns] = np.broadcast_to(value.astype(np.uint8), (channels,))
    return np.asarray(copy)


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
    """Return the image of such bytes (OpenCV: COLOR_HSV2BGR)."""
    sector = (hue.astype(np.float32) / 30) % 6
    share, full = saturation.astype(np.float32) / 255, value.astype(np.float32)
    planes = []
    for shift in (1, 3, 5):  # blue, green, red
        k = (shift + sector) % 6
        planes.append(full - full * share * np.clip(np.minimum(k, 4 - k), 0, 1))
    return _bytes(np.stack(planes, 2))
