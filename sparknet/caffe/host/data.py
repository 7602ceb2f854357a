"""Data: batches from a LevelDB or LMDB of Datum records (Caffe: data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost, transformation
from sparknet.errors import FileError
from sparknet.loaders.cursor import Cursor
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.image import decode
from sparknet.loaders.prefetch import Array, Arrays, Maker, room
from sparknet.loaders.random_size import RandomSize
from sparknet.native.batch_items import ENCODED, BatchItems, RecordError, Transformation


class DataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        values = self.node.plan.values
        transform = transformation(values, self.node.layer.phase, self.seed)
        return partial(DataMaker, values, transform)


class DataMaker:
    def __init__(self, values: Mapping[str, Any], transform: Transformation, first: int) -> None:
        self.size: int = values["batch_size"]
        self.labels: bool = values["labels"]
        forced = values["force_color"] or values["force_gray"]
        self.color: bool | None = values["force_color"] if forced else None
        self.transform = transform
        self.random_size: RandomSize | None = values["random_size"]
        self.decoders = Decoders()
        shuffle = transform.seed if values["shuffle"] else None
        self.cursor = Cursor(values["source"], values["backend"], first * self.size, shuffle)

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        keys, records = self.cursor.take(self.size)
        self._decode(keys, records, number * self.size)
        shape = (self.size, *self.transform.shape(records.shape()))
        out = room([shape, (self.size,)] if self.labels else [shape], spare)
        try:
            self.transform.apply(out[0], records, number * self.size)
        except RecordError as error:
            raise self.cursor.blame(keys, error) from error
        if self.labels:
            out[1][:] = records.labels
        return out

    def _decode(self, keys: list[bytes], records: BatchItems, first: int) -> None:
        encoded = set(records.of_kind(ENCODED))

        def image(number: int) -> Any:
            name = f"{self.cursor.source}, record {keys[number]!r}"
            held = number in encoded
            planes: Any = decode(records.encoded(number), name, self.color) if held else None
            planes = records.values(number) if planes is None else planes
            if self.random_size is None:
                return planes
            if planes.dtype != np.uint8:
                raise FileError(name, "holds floats, which have no random size")
            rng = np.random.default_rng([self.transform.seed, first + number])
            return self.random_size.apply(planes, rng, name)

        changed = list(range(len(records))) if self.random_size else sorted(encoded)
        for number, values in zip(changed, self.decoders.map(image, changed), strict=True):
            records.put(number, values)

    def close(self) -> None:
        self.decoders.close()
        self.cursor.close()
