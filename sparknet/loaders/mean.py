"""The mean image of a data set (Caffe: tools/compute_image_mean.cpp)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image import decode
from sparknet.loaders.records import Cursor
from sparknet.native.transform import ENCODED, Transformation


class Mean:
    """The sum of images so far, in double precision."""

    def __init__(self) -> None:
        self.total: Any = None
        self.count = 0

    def add(self, image: Any) -> None:
        """An image of channels x height x width."""
        if self.total is None:
            self.total = np.zeros(image.shape, np.float64)
        if image.shape != self.total.shape:
            raise ValueError(f"image {self.count} is {image.shape}, the first {self.total.shape}")
        self.total += image
        self.count += 1

    @property
    def value(self) -> Any:
        if not self.count:
            raise ValueError("there is no image")
        return (self.total / self.count).astype(np.float32)


def database_mean(source: str, backend: str) -> Any:
    """The mean of all records of a LevelDB or LMDB, encoded ones decoded as they are."""
    mean, plain = Mean(), Transformation()
    cursor = Cursor(source, backend)
    try:
        for number in range(len(cursor.database)):
            keys, records = cursor.take(1)
            if records.of_kind(ENCODED):
                name = f"{source}, record {keys[0]!r}"
                records.put(0, decode(records.encoded(0), name, None))
            image = np.empty((1, *records.shape()), np.float32)
            plain.apply(image, records, number)
            try:
                mean.add(image[0])
            except ValueError as error:
                raise FileError(source, f"record {keys[0]!r}: {error}") from error
    finally:
        cursor.close()
    if not mean.count:
        raise FileError(source, "is empty")
    return mean.value
