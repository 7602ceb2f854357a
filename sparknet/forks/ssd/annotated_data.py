"""AnnotatedData: images with boxes from a LevelDB or LMDB, for detectors."""

from __future__ import annotations

from typing import Any

from sparknet.layers.layer import Plan, Shape, between, shape_text
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders import noise
from sparknet.loaders.annotated import parse_annotated, resized
from sparknet.loaders.datum import stored_shape
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.loaders.transform import mean_image
from sparknet.proto import caffe_pb2
from sparknet.proto.untrusted import check_trusted

_RESIZE = caffe_pb2.ResizeParameter


YOLO_BOXES = 300
"""Rows that a label of YOLO's has."""


class AnnotatedData(SourceLayer):
    """annotated_data_layer.cpp of SSD; records are AnnotatedDatum messages.

    Top 1 has a row for each box of the batch: item, label, instance, xmin, ymin, xmax, ymax,
    difficult; one row of -1 where there is none.  Images go through ``distort_param``,
    ``expand_param``, one of the parts that the ``batch_sampler`` entries find, ``resize_param``,
    crop, mirror, mean and scale; ``emit_constraint`` says which boxes stay.

    With ``yolo_data_type: 1`` (MobileNet-YOLO) top 1 is N x 1 x 300 x 5: of each item the rows
    label - 1, centre, width and height, then zeros; an image is cut by up to yolo_data_jitter.
    Values: source, backend, batch_size, boxes (a second top is there), mean, scale.
    """

    type = "AnnotatedData"
    field = "annotated_data_param"
    fields = ("data_param", "transform_param")
    tops = between(1, 2)
    reads = batches = True

    def survey(self) -> Plan:
        options = self.parameter.data_param
        batch = self.batch(options.batch_size)
        self._check()
        shape, boxes = self._first()
        transform = self.parameter.transform_param
        self._check_mean(shape)
        if wrong := noise.check(transform.noise_param, shape[0]):
            self.fail(wrong)
        high, wide = shape[1:]
        if transform.HasField("resize_param"):
            high, wide = self._resized((high, wide), batch)
        high = transform.crop_h or transform.crop_size or high
        wide = transform.crop_w or transform.crop_size or wide
        tops: tuple[Shape, ...] = ((batch, shape[0], high, wide),)
        if len(self.parameter.top) > 1:
            tops += ((batch, 1, YOLO_BOXES, 5) if self.is_yolo else (1, 1, max(boxes, 1), 8),)
        values = {
            "source": options.source,
            "backend": "lmdb" if options.backend == caffe_pb2.DataParameter.LMDB else "leveldb",
            "batch_size": batch,
            "boxes": len(tops) > 1,
            "scale": transform.scale,
            "mean": self._mean(),
        }
        return Plan(tops=tops, values=values)

    def data_set(self) -> Any:
        return None

    def _resized(self, size: tuple[int, int], batch: int) -> tuple[int, int]:
        how = self.parameter.transform_param.resize_param
        if how.resize_mode == _RESIZE.FIT_LARGE_SIZE_AND_PAD:
            return how.height, how.width
        if how.resize_mode == _RESIZE.FIT_SMALL_SIZE and batch != 1:
            self.fail(f"FIT_SMALL_SIZE needs batch_size 1; it is {batch}")
        return resized(size, how)

    def _check(self) -> None:
        """Refuse settings that no image can be transformed by."""
        transform = self.parameter.transform_param
        if self.options.yolo_data_type not in (0, 1):
            self.fail(f"yolo_data_type must be 0 or 1; it is {self.options.yolo_data_type}")
        if not 0 <= self.jitter < 1:
            self.fail(f"yolo_data_jitter must be at least 0 and below 1; it is {self.jitter:g}")
        how = transform.resize_param
        if transform.HasField("resize_param") and (how.height < 1 or how.width < 1):
            self.fail(f"resize_param needs height and width; they are {how.height}, {how.width}")
        if transform.HasField("expand_param") and not transform.expand_param.max_expand_ratio >= 1:
            self.fail(f"max_expand_ratio {transform.expand_param.max_expand_ratio:g} is below 1")
        for number, batch_sampler in enumerate(self.options.batch_sampler):
            one = batch_sampler.sampler
            if not 0 < one.min_scale <= one.max_scale <= 1:
                self.fail(
                    f"batch_sampler {number}: scales must be above 0, at most 1, and in order; "
                    f"they are {one.min_scale:g} and {one.max_scale:g}"
                )
            if not 0 < one.min_aspect_ratio <= one.max_aspect_ratio < float("inf"):
                self.fail(
                    f"batch_sampler {number}: aspect ratios must be positive and in order; "
                    f"they are {one.min_aspect_ratio:g} and {one.max_aspect_ratio:g}"
                )

    def _first(self) -> tuple[tuple[int, int, int], int]:
        """The first image's shape, and its number of boxes."""
        options = self.parameter.data_param
        database = LMDB if options.backend == caffe_pb2.DataParameter.LMDB else LevelDB
        with self.reading(f"the database '{options.source}'"):
            with database(options.source) as records:
                key, value = records.first()
            record = parse_annotated(value, options.source, key)
            shape = stored_shape(record.datum, options.source, key, color=self.color)
        if min(shape) < 1:
            self.fail(f"the data is empty: its first item is {shape_text(shape)}")
        return shape, sum(len(group.annotation) for group in record.annotation_group)

    @property
    def is_yolo(self) -> bool:
        return bool(self.options.yolo_data_type)

    @property
    def jitter(self) -> float:
        """How much YOLO's crops may take off an image; 0 for SSD's data."""
        return float(self.options.yolo_data_jitter) if self.is_yolo else 0.0

    @property
    def color(self) -> bool | None:
        transform = self.parameter.transform_param
        forced = transform.force_color or transform.force_gray
        return bool(transform.force_color) if forced else None

    def _check_mean(self, shape: tuple[int, int, int]) -> None:
        transform = self.parameter.transform_param
        if transform.mean_value and transform.HasField("mean_file"):
            self.fail("transform_param takes either mean_file or mean_value; not both")
        if len(transform.mean_value) not in (0, 1, shape[0]):
            self.fail(
                f"needs one mean_value or one for each of the {shape[0]} channels; "
                f"there are {len(transform.mean_value)}"
            )

    def _mean(self) -> Any:
        transform = self.parameter.transform_param
        if not transform.HasField("mean_file"):
            return None
        check_trusted(self.parameter, "to read the mean file")
        try:
            return mean_image(transform.mean_file)
        except OSError as error:
            self.fail(f"the mean file cannot be read: {error}")
