"""Feed: writes rows into a net's blobs, transformed and checked, and reshapes the net."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparknet.errors import DataError, SparkNetError
from sparknet.loaders.image_arrays import stacked
from sparknet.native.batch_items import BatchItems, RecordError
from sparknet.net.entries import Entry
from sparknet.net.rows import ENCODED, Array, check_numbers, shaped


class Feed:
    """Writes blocks of rows into the entries of one net."""

    def __init__(
        self, entries: Sequence[Entry], phase: int, seed: int, transformed: bool = False
    ) -> None:
        """With `transformed`, rows have been transformed already."""
        self.entries = (
            [replace(e, transform=None, given=None) for e in entries] if transformed else entries
        )
        self._preparations = {
            entry.name: Preparation(entry, phase, seed)
            for entry in self.entries
            if entry.preprocessing is not None
        }

    def write(self, net: Any, block: Mapping[str, Array], first: int) -> int:
        """Fill the entries of the block's columns; `first` is the number of its first record."""
        filled = [entry for entry in self.entries if entry.name in block]
        values = {entry.name: self._checked(entry, block[entry.name]) for entry in filled}
        rows = len(next(iter(values.values()), ()))
        counts = {entry.name: len(values.get(entry.name, range(rows))) for entry in self.entries}
        reshape(net, {entry.name: entry.batch_shape(counts[entry.name]) for entry in self.entries})
        for entry in filled:
            self._fill(net.blobs[entry.name].data, entry, values[entry.name], first)
        return rows

    def _fill(self, out: Array, entry: Entry, values: Array, first: int) -> None:
        preparation = self._preparations.get(entry.name)
        if preparation is None:
            out[...] = np.moveaxis(values, 0, entry.axis) if entry.axis else values
            return
        preparation.write(out, values, first)

    def _checked(self, entry: Entry, values: Array) -> Array:
        """The rows in the entry's shape."""
        check_numbers(entry.name, values)
        values = shaped(entry.name, values, entry.stored)
        if (preparation := self._preparations.get(entry.name)) is not None:
            values = preparation.sized(values)
        if entry.is_label and values.dtype.kind == "f":
            _check_whole(entry, values)
        return values


def reshape(net: Any, shapes: Mapping[str, Sequence[int]]) -> None:
    """Reshape input blobs, and the net if a shape is new."""
    changed = False
    for name, shape in shapes.items():
        blob = net.blobs[name]
        if tuple(blob.shape) != tuple(shape):
            blob.reshape(*shape)
            changed = True
    if changed:
        net.reshape()


class Preparation:
    """What makes an entry's batch of stored rows, by its preprocessing."""

    def __init__(self, entry: Entry, phase: int, seed: int) -> None:
        how = entry.preprocessing
        assert how is not None
        self.entry, self._resize = entry, how.resize
        self._images = None if how.resize is None else entry.images(training=True)
        self._transformation = how.transformation(phase, seed)

    def sized(self, values: Array) -> Array:
        """Rows of channels x height x width in the size that images are resized to."""
        if self._images is None or not len(values) or values.shape[2:] == self._resize:
            return values
        images = self._images
        return stacked(raising(images.map(lambda row: images.of_planes(values[row]), len(values))))

    def write(self, out: Array, values: Array, first: int) -> None:
        """Crop, mean, scale and mirror; `first` is the number of the first row."""
        if values.dtype != np.uint8:
            values = values.astype(np.float32, copy=False)
        records = BatchItems(len(values))
        records.put_all(values)
        try:
            self._transformation.apply(out, records, first, threaded=True)
        except RecordError as error:
            name, number = self.entry.name, first + error.number
            raise DataError(f"column '{name}': record {number} {error}") from error

    def __call__(self, values: Array, first: int) -> Array:
        """The batch of rows as `Batches` has them."""
        rows = self.sized(shaped(self.entry.name, values, self.entry.stored))
        out = np.empty(
            (len(rows), *self._transformation.shape((rows.shape[1], *rows.shape[2:]))), np.float32
        )
        self.write(out, rows, first)
        return out


def decoded(entry: Entry, values: Array, training: bool) -> Array:
    """Encoded images (bytes or paths, of any shape) as rows of an entry; others as they are."""
    if values.dtype.kind not in ENCODED or entry.pictures is None:
        return values
    flat = values.reshape(-1)
    arrays = entry.images(training)
    rows = raising(arrays.all(flat, lambda row: f"column '{entry.name}': image {row}"))
    if len({row.shape for row in rows}) > 1:
        raise DataError(f"column '{entry.name}' has images of several sizes: give resize")
    found = stacked(rows)
    return found.reshape(*values.shape, *found.shape[1:])


def raising(found: Sequence[Array | SparkNetError]) -> list[Array]:
    """The arrays; the first error is raised."""
    for one in found:
        if isinstance(one, SparkNetError):
            raise one
    return [one for one in found if not isinstance(one, SparkNetError)]


def _check_whole(entry: Entry, values: Array) -> None:
    wrong = np.flatnonzero(values.ravel() != np.rint(values.ravel()))
    if wrong.size:
        raise DataError(
            f"column '{entry.name}': the label {values.ravel()[wrong[0]]} is no whole number"
        )
