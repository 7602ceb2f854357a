"""Feed: writes rows into a net's blobs, transformed and checked, and reshapes the net."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import transformation
from sparknet.errors import DataError
from sparknet.native.batch_items import BatchItems, RecordError, Transformation
from sparknet.net.entries import Entry
from sparknet.net.rows import Array, shaped


class Feed:
    """Writes blocks of rows into the entries of one net."""

    def __init__(
        self, entries: Sequence[Entry], phase: int, seed: int, transformed: bool = False
    ) -> None:
        """With `transformed`, rows have been transformed already."""
        self.entries = [replace(e, transform=None) for e in entries] if transformed else entries
        self._transformations = {
            entry.name: transformation(entry.transform.values(), phase, seed)
            for entry in self.entries
            if entry.transform is not None
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
        transform = self._transformations.get(entry.name)
        if transform is None:
            out[...] = np.moveaxis(values, 0, entry.axis) if entry.axis else values
            return
        _apply(transform, out, values, first, entry)

    def _checked(self, entry: Entry, values: Array) -> Array:
        """The rows in the entry's shape."""
        if values.dtype.kind not in "fiub":
            raise DataError(f"column '{entry.name}' holds {values.dtype}, not numbers")
        values = shaped(entry.name, values, entry.stored)
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


def _apply(transform: Transformation, out: Array, values: Array, first: int, entry: Entry) -> None:
    if values.dtype != np.uint8:
        values = values.astype(np.float32, copy=False)
    records = BatchItems(len(values))
    records.put_all(values)
    try:
        transform.apply(out, records, first, threaded=True)
    except RecordError as error:
        raise DataError(f"column '{entry.name}': record {first + error.number} {error}") from error


def _check_whole(entry: Entry, values: Array) -> None:
    wrong = np.flatnonzero(values.ravel() != np.rint(values.ravel()))
    if wrong.size:
        raise DataError(
            f"column '{entry.name}': the label {values.ravel()[wrong[0]]} is no whole number"
        )
