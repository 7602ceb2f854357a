"""AnnotatedData: images with boxes from an LMDB, sampled and distorted (SSD)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.layers.host import BatchHost
from sparknet.layers.layer import TRAIN, Plan, Shape, between, layer, shape_text
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders import augmentation
from sparknet.loaders.annotated import Annotated, boxes_of, prepare, resized
from sparknet.loaders.batches import Array, Arrays, Maker
from sparknet.loaders.datums import open_database, parse_datum, rounds, stored_shape
from sparknet.loaders.image_decoding import Decoders, decode
from sparknet.loaders.transform import mean_image
from sparknet.proto import caffe_pb2
from sparknet.proto.untrusted import check_trusted


class AnnotatedDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        layer = self.node.layer
        assert isinstance(layer, AnnotatedData)
        return partial(AnnotatedMaker, layer, self.node.plan.values, self.seed)


class AnnotatedMaker:
    """Item n of the data is record n, around the database; it draws by the seed and n."""

    def __init__(self, layer: AnnotatedData, values: Any, seed: int, first: int) -> None:
        self.values, self.seed = values, seed
        self.size: int = values["batch_size"]
        self.transform = layer.parameter.transform_param
        self.samplers = list(layer.options.batch_sampler)
        self.train, self.color = layer.phase == TRAIN, layer.color
        self.mean = self._mean()
        self.yolo, self.jitter = layer.is_yolo, layer.jitter
        self.hard_too = bool(layer.options.train_diffcult)
        self.decoders = Decoders()
        source = values["source"]
        self.database = open_database(source)
        skip = first * self.size % max(len(self.database), 1)
        self._records = islice(rounds(source, lambda: self.database), skip, None)

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        records = list(enumerate(islice(self._records, self.size), number * self.size))
        prepared = self.decoders.map(self._prepared, records)
        images = [one.image for one in prepared]
        shapes = {image.shape for image in images}
        if len(shapes) > 1:
            raise FileError(
                self.values["source"],
                f"holds images of {len(shapes)} sizes in one batch: give resize_param or a crop",
            )
        data = np.stack(images).transpose(0, 3, 1, 2).astype(np.float32, order="C")
        if self.mean is not None:
            data -= self.mean
        data *= np.float32(self.values["scale"])
        if not self.values["boxes"]:
            return [data]
        return [data, yolo_rows(prepared, self.hard_too) if self.yolo else rows(prepared)]

    def close(self) -> None:
        self.decoders.close()
        self.database.close()

    def _prepared(self, numbered: tuple[int, tuple[bytes, bytes]]) -> Annotated:
        number, (key, value) = numbered
        source = self.values["source"]
        record = parse_datum(value, source, key, caffe_pb2.AnnotatedDatum)
        one = Annotated(self._image(record.datum, key), *boxes_of(record))
        rng = np.random.default_rng([self.seed, number])
        try:
            return prepare(one, self.transform, self.samplers, rng, self.train, self.jitter)
        except FileError as error:
            reason = str(error).partition(": ")[2]
            raise FileError(source, f"record {key!r} {reason}") from error

    def _image(self, datum: Any, key: bytes) -> Any:
        """Height x width x channels bytes."""
        source = self.values["source"]
        if datum.encoded:
            planes = decode(datum.data, f"{source}, record {key!r}", self.color)
        else:
            shape = stored_shape(datum, source, key)
            if datum.float_data:
                raise FileError(source, f"record {key!r} holds floats, not pixels")
            planes = np.frombuffer(datum.data, np.uint8).reshape(shape)
        return planes.transpose(1, 2, 0)

    def _mean(self) -> Any:
        if self.transform.mean_value:
            return np.array(self.transform.mean_value, np.float32).reshape(1, -1, 1, 1)
        return self.values["mean"]


def yolo_rows(pictures: list[Annotated], hard_too: bool) -> Array:
    """Return each item's boxes: class from 0, centre, width and height, filled up with zeros."""
    rows = np.zeros((len(pictures), 1, YOLO_BOXES, 5), np.float32)
    for item, one in enumerate(pictures):
        places = np.flatnonzero(hard_too | (one.facts[:, 2] == 0))[:YOLO_BOXES]
        low, high = one.boxes[places, :2], one.boxes[places, 2:]
        facts = one.facts[places, :1] - 1
        rows[item, 0, : len(places)] = np.concatenate([facts, (low + high) / 2, high - low], 1)
    return rows


def rows(pictures: list[Annotated]) -> Array:
    """Return a row for each box of a batch: item, label, instance, corners, difficult."""
    parts = [
        np.concatenate(
            [np.full((len(one.boxes), 1), item), one.facts[:, :2], one.boxes, one.facts[:, 2:]], 1
        )
        for item, one in enumerate(pictures)
    ]
    rows: Array = np.concatenate(parts).astype(np.float32)
    if not len(rows):
        rows = np.full((1, 8), -1, np.float32)
    return rows[None, None]


_RESIZE = caffe_pb2.ResizeParameter


YOLO_BOXES = 300
"""Rows that a label of YOLO's has."""


@layer("AnnotatedData")
class AnnotatedData(SourceLayer):
    """annotated_data_layer.cpp of SSD; records are AnnotatedDatum messages.

    Top 1 has a row for each box of the batch: item, label, instance, xmin, ymin, xmax, ymax,
    difficult; one row of -1 where there is none.  Images go through ``distort_param``,
    ``expand_param``, one of the parts that the ``batch_sampler`` entries find, ``resize_param``,
    crop, mirror, mean and scale; ``emit_constraint`` says which boxes stay.

    With ``yolo_data_type: 1`` (MobileNet-YOLO) top 1 is N x 1 x 300 x 5: of each item the rows
    label - 1, centre, width and height, then zeros; an image is cut by up to yolo_data_jitter."""

    host = AnnotatedDataHost
    field = "annotated_data_param"
    fields = ("data_param", "transform_param")
    tops = between(1, 2)
    reads_files = has_batch_size = True

    def survey(self) -> Plan:
        options = self.parameter.data_param
        batch = self.batch(options.batch_size)
        self._check()
        shape, boxes = self._first()
        transform = self.parameter.transform_param
        self._check_mean(shape)
        if wrong := augmentation.check(transform.noise_param, shape[0]):
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
        """Return the first image's shape, and its number of boxes."""
        options = self.parameter.data_param
        with self.reading(f"the database '{options.source}'"):
            with open_database(options.source) as records:
                key, value = records.first()
            record = parse_datum(value, options.source, key, caffe_pb2.AnnotatedDatum)
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
