"""Batches of stored images → what a net is fed, in one native pass.

Caffe: data_transformer.cpp; SparkNet: Preprocessor.scala.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from sparknet.errors import ArrayError, FileError, SpecError
from sparknet.loaders.random_size import INTEL, NVIDIA
from sparknet.loaders.records import Array
from sparknet.native.batch_items import BatchItems, Shape3, Transformation
from sparknet.proto import caffe_pb2, read_blob

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
    """SpecError for a field that would change images in another fork; `known` are those that the
    caller honours."""
    given = {field.name for field, value in parameter.ListFields()} - set(known)
    for name in FOREIGN:
        if name in given:
            raise SpecError(f"transform_param.{name} belongs to SSD's own data layers")
    for whose, names in ELSEWHERE.items():
        for name in names:
            if name in given:
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
        shown = " x ".join(map(str, stored))
        if how.mean is not None and how.mean.shape != tuple(stored):
            mean = " x ".join(map(str, how.mean.shape))
            raise ArrayError(f"the mean is {mean}, but the images are {shown}")
        if len(how.mean_values) not in (0, 1, channels):
            raise ArrayError(f"{len(how.mean_values)} mean values for {channels} channels")
        if how.crop is not None and (how.crop[0] > height or how.crop[1] > width):
            raise ArrayError(f"crop_size {how.crop[0]} is larger than the images, {shown}")
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
    """The mean of a binaryproto file, as channels x height x width."""
    return _three_axes(read_blob(path), path)


def _three_axes(mean: Floats, name: str = "the mean") -> Floats:
    if mean.ndim > 4 or (mean.ndim == 4 and mean.shape[0] != 1):
        raise FileError(name, f"is {' x '.join(map(str, mean.shape))}, not one image")
    return mean.reshape((1, 1, 1, *mean.shape)[-3:])


def _options(
    parameter: caffe_pb2.TransformationParameter | None, settings: dict[str, Any]
) -> caffe_pb2.TransformationParameter:
    """The message, or one made of keywords."""
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
