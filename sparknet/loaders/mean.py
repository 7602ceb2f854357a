"""The mean image of a data set (Caffe: tools/compute_image_mean.cpp)."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import ArrayError, FileError
from sparknet.loaders.batches import one_pass
from sparknet.loaders.records import Records

Floats = np.ndarray[Any, np.dtype[np.float32]]
AT_ONCE = 64


class Mean:
    """The sum of images so far, in double precision."""

    def __init__(self) -> None:
        self.total: Any = None
        self.count = 0

    def add(self, images: Any) -> None:
        """Images x channels x height x width."""
        shape = images.shape[1:]
        if self.total is None:
            self.total = np.zeros(shape, np.float64)
        if shape != self.total.shape:
            raise ArrayError(f"image {self.count} is {shape}, the first {self.total.shape}")
        self.total += images.sum(0, dtype=np.float64)
        self.count += len(images)

    @property
    def value(self) -> Floats:
        """The mean; that of each channel is `mean.value.mean((1, 2))`."""
        if not self.count:
            raise ArrayError("there is no image to take the mean of")
        mean: Floats = (self.total / self.count).astype(np.float32)
        return mean


def mean_of(records: Records, column: str = "data") -> Floats:
    """The mean of a column, batch by batch; records that are left out do not count."""
    if column not in records.columns:
        raise FileError("records", f"have no column '{column}': {', '.join(records.columns)}")
    mean = Mean()
    for batch in one_pass(records, AT_ONCE):
        mean.add(batch[column])
    return mean.value
