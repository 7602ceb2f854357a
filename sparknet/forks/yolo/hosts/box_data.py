"""BoxData: images with boxes (caffe-yolov2: box_data_layer.cpp, data_transformer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost, transformation
from sparknet.errors import FileError
from sparknet.forks.yolo.box_data import BOXES
from sparknet.layers.layer import TRAIN
from sparknet.loaders.cursor import rounds
from sparknet.loaders.datum import parse_datum
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.image import decode
from sparknet.loaders.leveldb import LevelDB
from sparknet.loaders.lmdb import LMDB
from sparknet.loaders.prefetch import Array, Arrays, Maker, room
from sparknet.loaders.resize import resize
from sparknet.native.batch_items import BatchItems, RecordError, Transformation

SHARES = 30
"""Hundredths of a side that a part may lack."""
TRIES = 50


class BoxDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        values, phase = self.node.plan.values, self.node.layer.phase
        transform = transformation(values, phase, self.seed)
        return partial(BoxMaker, values, transform, phase == TRAIN)


class BoxMaker:
    """Item n of the data is record n, around the database; it draws by the seed and n."""

    def __init__(self, values: Any, transform: Transformation, train: bool, first: int) -> None:
        self.values, self.transform, self.train = values, transform, train
        self.size: int = values["batch_size"]
        forced = values["force_color"] or values["force_gray"]
        self.color: bool | None = values["force_color"] if forced else None
        self.decoders = Decoders()
        source = values["source"]
        self.database: LMDB | LevelDB = (LMDB if values["backend"] == "lmdb" else LevelDB)(source)
        skip = first * self.size % max(len(self.database), 1)
        self._records = islice(rounds(source, lambda: self.database), skip, None)

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        numbered = list(enumerate(islice(self._records, self.size), number * self.size))
        made = self.decoders.map(self._made, numbered)
        records = BatchItems(self.size)
        for place, (planes, _) in enumerate(made):
            records.put(place, planes)
        labels = self.values["labels"]
        shapes = [(self.size, *self.transform.shape(records.shape()))]
        out = room([*shapes, *[(self.size, 5 * BOXES)] * labels], spare)
        try:
            self.transform.apply(out[0], records, number * self.size)
        except RecordError as error:
            key = numbered[error.number][1][0]
            raise FileError(self.values["source"], f"record {key!r}: {error}") from error
        for top in out[1:]:
            top[:] = [rows for _, rows in made]
        return out

    def close(self) -> None:
        self.decoders.close()
        self.database.close()

    def _made(self, numbered: tuple[int, tuple[bytes, bytes]]) -> tuple[Any, Array]:
        item, (key, value) = numbered
        source = self.values["source"]
        name = f"{source}, record {key!r}"
        datum = parse_datum(value, source, key)
        numbers = np.array(datum.float_data, np.float32)
        if not datum.encoded or not len(numbers) or len(numbers) % 6:
            raise FileError(name, "must be an encoded image with six numbers for each box")
        boxes = numbers.reshape(-1, 6)
        if not np.isfinite(boxes).all() or (boxes[:, 0] < 0).any():
            raise FileError(name, "has a box that is none")
        planes = decode(datum.data, name, self.color)
        if self.train:
            rng = np.random.default_rng([self.transform.seed, item])
            planes, boxes = part_of(planes, boxes, rng)
        rows = np.zeros((BOXES, 5), np.float32)
        kept = boxes[:BOXES, [0, 2, 3, 4, 5]]
        rows[: len(kept)] = kept
        return planes, rows.reshape(-1)


def part_of(planes: Any, boxes: Array, rng: np.random.Generator) -> tuple[Any, Array]:
    """A part of an image with the boxes whose centres lie in it, resized to the image; the whole
    one, where chance finds no part with a box."""
    sides = np.array(planes.shape[:0:-1])
    pixels = np.trunc(boxes[:, 2:] * np.tile(sides, 2))
    for _ in range(TRIES):
        size = np.maximum((sides * (1 - rng.integers(SHARES) / 100)).astype(np.int64) - 1, 1)
        low = rng.integers(np.maximum(sides - size, 1))
        inside = ((pixels[:, :2] >= low) & (pixels[:, :2] < low + size)).all(1)
        if inside.any():
            part = planes[:, low[1] : low[1] + size[1], low[0] : low[0] + size[0]]
            image = np.ascontiguousarray(part.transpose(1, 2, 0))
            whole = resize(image, planes.shape[1:], "cv2.linear").reshape(*planes.shape[1:], -1)
            moved = (pixels[inside, :2] - low) / size
            found = np.concatenate([boxes[inside, :2], moved, pixels[inside, 2:] / size], 1)
            return whole.transpose(2, 0, 1), found.astype(np.float32)
    return planes, boxes
