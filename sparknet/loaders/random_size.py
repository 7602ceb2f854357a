"""Images in sizes by chance, before they are cropped, as Intel's and NVIDIA's Caffe have it.

intel/caffe: data_transformer.cpp, RandomResizeImage, RandomAlterAspectRatio; NVIDIA/caffe:
data_transformer.cpp, image_random_resize.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.annotated import WAYS
from sparknet.loaders.resize import resize
from sparknet.loaders.window import rounded
from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]
Size = tuple[int, int]

INTEL = ("random_resize_param", "random_aspect_ratio_param")
NVIDIA = (
    *("img_rand_resize_lower", "img_rand_resize_upper"),
    *("rand_resize_ratio_lower", "rand_resize_ratio_upper"),
    *("vertical_stretch_lower", "vertical_stretch_upper"),
    *("horizontal_stretch_lower", "horizontal_stretch_upper"),
)
FIELDS = (
    *INTEL,
    *NVIDIA,
    *("allow_upscale", "interpolation_algo_down", "interpolation_algo_up"),
)
ALGORITHMS = ("cv2.nearest", "cv2.linear", "cv2.cubic", "cv2.area")
LARGEST = 1 << 28
"""Pixels that a resized image may have."""


@dataclass(frozen=True)
class RandomSize:
    """Resizes an image by chance and crops it: by chance in TRAIN, in its middle in TEST."""

    parameter: bytes
    train: bool

    @classmethod
    def of(cls, transform: caffe_pb2.TransformationParameter, train: bool) -> RandomSize | None:
        """What a transform_param asks for; None where it asks for one size."""
        if not any(transform.HasField(name) for name in (*INTEL, *NVIDIA)):
            return None
        return cls(transform.SerializeToString(), train)

    def apply(self, planes: Array, rng: np.random.Generator, name: str) -> Array:
        """Channels x height x width bytes, cropped to crop_size."""
        transform = caffe_pb2.TransformationParameter.FromString(self.parameter)
        image = np.ascontiguousarray(planes.transpose(1, 2, 0))
        image = _sized(image, transform, rng, name)
        crop = transform.crop_size
        free = [side - crop for side in image.shape[:2]]
        if min(free) < 0:
            told = " x ".join(map(str, image.shape[:2]))
            raise FileError(name, f"becomes {told} pixels, smaller than the crop {crop}")
        top, left = (int(rng.integers(more + 1)) if self.train else more // 2 for more in free)
        part = image[top : top + crop, left : left + crop]
        return np.ascontiguousarray(part.transpose(2, 0, 1))


def _sized(
    image: Array, transform: caffe_pb2.TransformationParameter, rng: np.random.Generator, name: str
) -> Array:
    stored: Size = image.shape[:2]
    if transform.HasField("random_resize_param"):
        how = transform.random_resize_param
        least, most = how.min_size or min(stored), how.max_size or max(stored)
        short = int(rng.integers(least, max(most, least) + 1))
        return _resized(image, _shorter(stored, short), _way(how.resize_param, rng), name)
    if transform.HasField("random_aspect_ratio_param"):
        return _part(image, transform, rng, name)
    size = _nvidia_size(stored, transform, rng)
    shrinks = size[0] <= stored[0] and size[1] <= stored[1]
    field = "interpolation_algo_down" if shrinks else "interpolation_algo_up"
    return _resized(image, size, ALGORITHMS[getattr(transform, field)], name)


def _part(
    image: Array, transform: caffe_pb2.TransformationParameter, rng: np.random.Generator, name: str
) -> Array:
    """A part of an image with some share of its area, stretched, or all of it."""
    how, crop = transform.random_aspect_ratio_param, transform.crop_size
    way = _way(how.resize_param, rng)
    high, wide = image.shape[:2]
    change = how.aspect_ratio_change
    for _ in range(min(how.max_attempt, 100)):
        side = np.sqrt(rng.uniform(how.min_area_ratio, how.max_area_ratio) * high * wide)
        aspect = rng.uniform(min(change, 1 / change), max(change, 1 / change))
        size = [int(side * aspect), int(side / aspect)]
        if rng.random() < 0.5:
            size.reverse()
        if 0 < size[0] <= high and 0 < size[1] <= wide:
            top, left = rng.integers(high - size[0] + 1), rng.integers(wide - size[1] + 1)
            part = np.ascontiguousarray(image[top : top + size[0], left : left + size[1]])
            return resize(part, (crop, crop), way)
    return _resized(image, _shorter((high, wide), crop), way, name)


def _nvidia_size(
    stored: Size, transform: caffe_pb2.TransformationParameter, rng: np.random.Generator
) -> Size:
    short = min(stored)
    least, most = transform.img_rand_resize_lower, transform.img_rand_resize_upper
    if least and most:
        short = int(rng.integers(least, max(most, least) + 1))
    high, wide = (side * short / min(stored) for side in stored)
    least_ratio, most_ratio = transform.rand_resize_ratio_lower, transform.rand_resize_ratio_upper
    if least_ratio >= 1 and most_ratio > 1:
        ratio = rng.uniform(least_ratio, most_ratio)
        if wide > high or (wide == high and rng.integers(2)):
            wide = high * ratio
        else:
            high = wide * ratio
    high *= _stretch(transform.vertical_stretch_lower, transform.vertical_stretch_upper, rng)
    wide *= _stretch(transform.horizontal_stretch_lower, transform.horizontal_stretch_upper, rng)
    size = [max(transform.crop_size, rounded(side)) for side in (high, wide)]
    if not transform.allow_upscale:
        size = [min(new, old) for new, old in zip(size, stored, strict=True)]
    return size[0], size[1]


def _stretch(least: float, most: float, rng: np.random.Generator) -> float:
    return float(rng.uniform(least, most)) if least > 0 and most > 0 else 1.0


def _shorter(stored: Size, short: int) -> Size:
    """A size whose smaller side is `short`."""
    high, wide = (int(side * short / min(stored)) for side in stored)
    return max(high, short), max(wide, short)


def _way(how: caffe_pb2.ResizeParameter, rng: np.random.Generator) -> str:
    ways = list(how.interp_mode) or [caffe_pb2.ResizeParameter.LINEAR]
    return WAYS[ways[rng.integers(len(ways))]]


def _resized(image: Array, size: Size, way: str, name: str) -> Array:
    if size[0] * size[1] > LARGEST:
        raise FileError(name, f"would be resized to {size[0]} x {size[1]} pixels")
    return resize(image, size, way)
