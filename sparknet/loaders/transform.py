"""Batches of stored images → what a net is fed, in one native pass.

intel/caffe: data_transformer.cpp, RandomResizeImage, RandomAlterAspectRatio; NVIDIA/caffe:
data_transformer.cpp, image_random_resize.

Caffe: data_transformer.cpp; SparkNet: Preprocessor.scala.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.errors import ArrayError, FileError, SpecError
from sparknet.loaders.annotated import WAYS
from sparknet.loaders.resize import resize
from sparknet.loaders.window import rounded
from sparknet.native.transform import BatchItems, Shape3, Transformation
from sparknet.proto import caffe_pb2, read_blob

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
        """Return what a transform_param asks for; None where it asks for one size."""
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
            size = " x ".join(map(str, image.shape[:2]))
            raise FileError(name, f"becomes {size} pixels, smaller than the crop {crop}")
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
    """Return a part of an image with some share of its area, stretched, or all of it."""
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
    """Return a size whose smaller side is `short`."""
    high, wide = (int(side * short / min(stored)) for side in stored)
    return max(high, short), max(wide, short)


def _way(how: caffe_pb2.ResizeParameter, rng: np.random.Generator) -> str:
    ways = list(how.interp_mode) or [caffe_pb2.ResizeParameter.LINEAR]
    return WAYS[ways[rng.integers(len(ways))]]


def _resized(image: Array, size: Size, way: str, name: str) -> Array:
    if size[0] * size[1] > LARGEST:
        raise FileError(name, f"would be resized to {size[0]} x {size[1]} pixels")
    return resize(image, size, way)


Floats = np.ndarray[Any, np.dtype[np.float32]]

TRAIN: int = caffe_pb2.TRAIN
AXES = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2)}
FOREIGN = (
    "resize_param",
    "noise_param",
    "emit_constraint",
    "crop_h",
    "crop_w",
    "distort_param",
    "expand_param",
)
"""What SSD's fork added to transform_param; its own data layers use it."""
ELSEWHERE = {
    "Intel's": (*INTEL, "flow", "bgr2rgb", "pad"),
    "NVIDIA's": NVIDIA,
    "TSN's": (
        *("fix_crop", "multi_scale", "scale_ratios", "max_distort", "is_flow", "more_fix_crop"),
        *("stride", "upper_size", "upper_height", "upper_width", "original_image"),
    ),
    "MobileNet-YOLO's": ("further_resize_param",),
    "PSPNet's": ("scale_factors", "crop_width", "crop_height"),
}
"""What other forks added and is not done here, by whose Caffe does it."""


def refuse_foreign(
    parameter: caffe_pb2.TransformationParameter, known: Collection[str] = ()
) -> None:
    """Refuse a field that changes images in another fork, unless it is `known`."""
    fields = {field.name for field, value in parameter.ListFields()} - set(known)
    for name in FOREIGN:
        if name in fields:
            raise SpecError(f"transform_param.{name} belongs to SSD's own data layers")
    for whose, names in ELSEWHERE.items():
        for name in names:
            if name in fields:
                raise SpecError(f"transform_param.{name} exists only in {whose} Caffe")


class Transform:
    """Mean, scale, crop and mirror of a batch: bytes or numbers in, float32 out.

    `parameter` is a net's transform_param; or say the same by keyword (`crop_size`, `mirror`,
    `scale`, `mean` or `mean_file`, `mean_values`).  Crops are random in TRAIN and central in
    TEST, mirroring is random in both, as in Caffe.  Item n draws the same random numbers in
    any batch: they depend on the seed and on n alone.
    """

    def __init__(
        self,
        parameter: caffe_pb2.TransformationParameter | None = None,
        phase: int = TRAIN,
        seed: int = 0,
        *,
        layout: str = "NCHW",
        mean: Any = None,
        threaded: bool = False,
        **settings: Any,
    ) -> None:
        if layout not in AXES:
            raise SpecError(f"layout '{layout}' is neither NCHW nor NHWC")
        self._axes, self._threaded = AXES[layout], threaded
        options = _options(parameter, settings)
        if options.HasField("mean_file"):
            mean = mean_image(options.mean_file)
        if mean is not None and options.mean_value:
            raise SpecError("a transform takes either a mean image or mean values; not both")
        self.transformation = Transformation(
            crop=(options.crop_size,) * 2 if options.crop_size else None,
            random_crop=bool(options.crop_size) and phase == TRAIN,
            mirror=options.mirror,
            scale=options.scale,
            mean=None if mean is None else _three_axes(np.asarray(mean, np.float32)),
            mean_values=tuple(options.mean_value),
            seed=seed,
        )
        self.cursor = 0
        """The number of the next item."""

    def __call__(self, batch: Array, first: int | None = None) -> Floats:
        """N x channels x height x width; the layout says where the batch has its channels.

        `first` is the number of its first item; by default the items are counted (`cursor`).
        """
        images = self._images(np.asarray(batch))
        out = np.empty((len(images), *self.shape(images.shape[1:])), np.float32)
        records = BatchItems(len(images))
        records.put_all(images)
        number = self.cursor if first is None else first
        self.transformation.apply(out, records, number, self._threaded)
        if first is None:
            self.cursor += len(images)
        return out

    def seek(self, cursor: int) -> None:
        """Continue with the random numbers of that item."""
        self.cursor = cursor

    def shape(self, stored: tuple[int, ...]) -> Shape3:
        """Channels, height and width after the transformation of such images."""
        channels, height, width = stored
        how = self.transformation
        text = " x ".join(map(str, stored))
        if how.mean is not None and how.mean.shape != tuple(stored):
            mean = " x ".join(map(str, how.mean.shape))
            raise ArrayError(f"the mean is {mean}, but the images are {text}")
        if len(how.mean_values) not in (0, 1, channels):
            raise ArrayError(f"{len(how.mean_values)} mean values for {channels} channels")
        if how.crop is not None and (how.crop[0] > height or how.crop[1] > width):
            raise ArrayError(f"crop_size {how.crop[0]} is larger than the images, {text}")
        return how.shape((channels, height, width))

    def _images(self, batch: Array) -> Array:
        """N x channels x height x width, without a copy of bytes or floats."""
        if batch.ndim == 3:
            batch = batch[:, np.newaxis]
        elif batch.ndim == 4:
            batch = batch.transpose(self._axes)
        else:
            raise ArrayError(f"a batch of images has 3 or 4 axes, not {batch.ndim}")
        if batch.dtype.kind not in "biuf":
            raise ArrayError(f"images of type {batch.dtype} cannot be transformed")
        return batch if batch.dtype in (np.uint8, np.float32) else batch.astype(np.float32)


def mean_image(path: str) -> Floats:
    """Return the mean of a binaryproto file, as channels x height x width."""
    return _three_axes(read_blob(path), path)


def _three_axes(mean: Floats, name: str = "the mean") -> Floats:
    if mean.ndim > 4 or (mean.ndim == 4 and mean.shape[0] != 1):
        raise FileError(name, f"is {' x '.join(map(str, mean.shape))}, not one image")
    return mean.reshape((1, 1, 1, *mean.shape)[-3:])


def _options(
    parameter: caffe_pb2.TransformationParameter | None, settings: dict[str, Any]
) -> caffe_pb2.TransformationParameter:
    """Return the message, or one made of keywords."""
    if parameter is not None and settings:
        raise SpecError("a transform takes a transform_param or keywords; not both")
    if parameter is None:
        values = settings.pop("mean_values", ())
        try:
            parameter = caffe_pb2.TransformationParameter(mean_value=values, **settings)
        except (ValueError, TypeError) as error:
            raise SpecError(f"a transform cannot be made of {settings}: {error}") from error
    refuse_foreign(parameter)
    return parameter
