"""AnnotatedData: batches of images with boxes (SSD's Caffe: annotated_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost
from sparknet.errors import FileError
from sparknet.forks.ssd.annotated_data import YOLO_BOXES, AnnotatedData
from sparknet.layers.layer import TRAIN
from sparknet.loaders.annotated import Annotated, boxes_of, parse_annotated, prepare
from sparknet.loaders.cursor import rounds
from sparknet.loaders.datum import stored_shape
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.image import decode
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.loaders.prefetch import Array, Arrays, Maker


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
        source, lmdb = values["source"], values["backend"] == "lmdb"
        self.database: LMDB | LevelDB = LMDB(source) if lmdb else LevelDB(source)
        skip = first * self.size % max(len(self.database), 1)
        self._records = islice(rounds(source, lambda: self.database), skip, None)

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        records = list(enumerate(islice(self._records, self.size), number * self.size))
        made = self.decoders.map(self._prepared, records)
        images = [one.image for one in made]
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
        return [data, yolo_rows(made, self.hard_too) if self.yolo else rows(made)]

    def close(self) -> None:
        self.decoders.close()
        self.database.close()

    def _prepared(self, numbered: tuple[int, tuple[bytes, bytes]]) -> Annotated:
        number, (key, value) = numbered
        source = self.values["source"]
        record = parse_annotated(value, source, key)
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


def yolo_rows(made: list[Annotated], hard_too: bool) -> Array:
    """Of each item its boxes as class from 0, centre, width and height, filled up with zeros."""
    found = np.zeros((len(made), 1, YOLO_BOXES, 5), np.float32)
    for item, one in enumerate(made):
        kept = np.flatnonzero(hard_too | (one.facts[:, 2] == 0))[:YOLO_BOXES]
        low, high = one.boxes[kept, :2], one.boxes[kept, 2:]
        facts = one.facts[kept, :1] - 1
        found[item, 0, : len(kept)] = np.concatenate([facts, (low + high) / 2, high - low], 1)
    return found


def rows(made: list[Annotated]) -> Array:
    """A row for each box of a batch: item, label, instance, corners, difficult."""
    parts = [
        np.concatenate(
            [np.full((len(one.boxes), 1), item), one.facts[:, :2], one.boxes, one.facts[:, 2:]], 1
        )
        for item, one in enumerate(made)
    ]
    found: Array = np.concatenate(parts).astype(np.float32)
    if not len(found):
        found = np.full((1, 8), -1, np.float32)
    return found[None, None]
