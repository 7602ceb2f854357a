"""Feed: writes rows into a net's blobs, checked and transformed, and reshapes the net."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from sparknet.errors import DataError, LayerError, SparkNetError, clean
from sparknet.layers import TRAIN, Shape
from sparknet.layers.layer import shape_text
from sparknet.loaders.image_arrays import stacked
from sparknet.native.staged_rows import DeviceRows, StagedRows
from sparknet.native.transform import BatchItems, RecordError
from sparknet.net.entries import Entry

Array = np.ndarray[Any, Any]
Pattern = tuple[int | None, ...]
ENCODED = "OSU"
"""The kinds of arrays of encoded images, or of paths of image files."""


class Feed:
    """Writes blocks of rows into the entries of one net."""

    def __init__(
        self, entries: Sequence[Entry], phase: int, seed: int, transformed: bool = False
    ) -> None:
        """With `transformed`, rows have been transformed already."""
        self._given, self._training = entries, phase == TRAIN
        self.entries = (
            [replace(e, transform=None, given=None) for e in entries] if transformed else entries
        )
        self._preparations = {
            entry.name: Preparation(entry, phase, seed)
            for entry in self.entries
            if entry.preprocessing is not None
        }
        self._stored = {entry.name: entry.stored for entry in self.entries}
        self._sound: dict[str, tuple[Shape, Any]] = {}
        """Shape and type of a column's records, where its last values needed no change."""
        self._counts: Sequence[int] = ()
        self._shapes: Mapping[str, Shape] = {}

    def write(self, net: Any, block: Mapping[str, Array], first: int = 0) -> int:
        """Fill the entries of the block's columns; `first` is the number of its first record."""
        values = self.checked(block)
        rows = len(next(iter(values.values()), ()))
        counts = [len(values.get(e.name, range(rows))) for e in self.entries]
        self._reshape(net, self._shaped(counts), rows)
        for entry in self.entries:
            if entry.name in values:
                self._fill(net.blobs[entry.name], entry, values[entry.name], first)
        return rows

    def plain_inputs(self, columns: Mapping[str, Any]) -> list[str] | None:
        """Return the entries of these columns if all their values are copied as they are."""
        entries = [entry for entry in self.entries if entry.name in columns]
        if any(
            entry.axis or self._sound.get(entry.name) != (values.shape[1:], values.dtype)
            for entry in entries
            for values in [columns[entry.name]]
        ):
            return None
        return [entry.name for entry in entries]

    def _reshape(self, net: Any, shapes: Mapping[str, Shape], rows: int) -> None:
        """Reshape the net; where it does not take these numbers of records, say so and leave it."""
        before = {name: tuple(net.blobs[name].shape) for name in shapes}
        if before == shapes:
            return
        try:
            reshape(net, shapes)
        except LayerError as error:
            usual = [before[e.name][e.axis] for e in self.entries if before[e.name]]
            counts = {e.name: shapes[e.name][e.axis] for e in self.entries if shapes[e.name]}
            if len({*counts.values()}) > 1:
                each = ", ".join(f"{name} {count}" for name, count in counts.items())
                message = f"the inputs have different numbers of records ({each})"
            elif len({*usual}) != 1 or rows == usual[0]:
                raise
            else:
                message = f"the net takes {usual[0]} records at a time, and these are {rows}"
            reshape(net, before)
            reason = str(error).split(": ", 1)[-1]
            raise LayerError(error.layer, f"{message}: {reason}") from error

    def checked(self, block: Mapping[str, Array]) -> dict[str, Array]:
        """Return the block's columns in the entries' shapes; DataError for what does not fit."""
        return {
            entry.name: self._checked(values, entry, block[entry.name])
            for values, entry in zip(self._given, self.entries, strict=True)
            if entry.name in block
        }

    def _shaped(self, counts: Sequence[int]) -> Mapping[str, Shape]:
        """Return the blobs' shapes for so many records in each."""
        if counts != self._counts:
            pairs = zip(self.entries, counts, strict=True)
            self._counts = counts
            self._shapes = {entry.name: entry.batch_shape(count) for entry, count in pairs}
        return self._shapes

    def _fill(self, blob: Any, entry: Entry, values: Any, first: int) -> None:
        preparation = self._preparations.get(entry.name)
        if isinstance(values, StagedRows):
            blob.put(values)
            return
        if preparation is not None:
            staged = preparation.staged(values, first, getattr(blob, "device_rows", None))
            if staged is not None:
                blob.put(staged)
                return
        out = blob.data
        if preparation is None:
            order = (*range(1, entry.axis + 1), 0, *range(entry.axis + 1, out.ndim))
            out[...] = values.transpose(order) if entry.axis else values
            return
        preparation.write(out, values, first)

    def _checked(self, given: Entry, entry: Entry, values: Any) -> Any:
        """Return the rows in the entry's shape."""
        if isinstance(values, StagedRows):
            if not fits(values.shape[1:], self._stored[entry.name]):
                raise DataError(misfit(entry.name, values.shape[1:], self._stored[entry.name]))
            return values
        kind = values.shape[1:], values.dtype
        if self._sound.get(entry.name) == kind:
            return values
        arrays = decoded(given, values, self._training)
        check_numbers(entry.name, arrays)
        arrays = shaped(entry.name, arrays, self._stored[entry.name])
        if (preparation := self._preparations.get(entry.name)) is not None:
            arrays = preparation.sized(arrays)
        if entry.is_label and arrays.dtype.kind == "f":
            _check_whole(entry, arrays)
        elif arrays is values and preparation is None:
            self._sound[entry.name] = kind
        return arrays


class BatchPass:
    """Runs a net over batches of some columns, and returns blobs in the net's memory."""

    def __init__(
        self,
        net: Any,
        write: Callable[[dict[str, Array], int], int],
        blobs: list[str],
        missing: Sequence[str],
        feed: Feed | None,
    ) -> None:
        """``missing`` are inputs without a column, which the blobs do not depend on.

        ``feed`` is what writes, if it does so alone.
        """
        self._net, self._write, self._blobs, self._missing = net, write, blobs, missing
        self._feed = feed
        self._prepared: Any = None

    def run(self, columns: dict[str, Array], first: int) -> dict[str, Array]:
        """``first`` is the number of the first record."""
        if self._prepared is not None:
            views: dict[str, Array] | None = self._prepared.run(columns)
            if views is not None:
                return views
        self._write(columns, first)
        for name in self._missing:
            self._net.blobs[name].data[...] = 0
        tops = self._net.forward(blobs=self._blobs)
        self._prepared = self._prepare(columns)
        return {name: tops[name] for name in self._blobs}

    @staticmethod
    def kinds(batch: Any) -> dict[str, tuple[Shape, Any]] | None:
        """Return the shape and type of each column's records; None unless they are arrays."""
        if type(batch) is not dict:
            return None
        kinds = {}
        for name, values in batch.items():
            if type(values) is not np.ndarray or not values.ndim or not len(values):
                return None
            kinds[name] = values.shape[1:], values.dtype
        return kinds

    def _prepare(self, columns: dict[str, Array]) -> Any:
        """Return a quicker pass for the next columns like these, where there is one."""
        prepared_pass = getattr(self._net, "prepared_pass", None)  # other pycaffes have none
        if prepared_pass is None or self._feed is None:
            return None
        inputs = self._feed.plain_inputs(columns)
        if inputs is None:  # and so it is for all columns like these
            self._feed = None
            return None
        return prepared_pass(inputs, self._missing, self._blobs)


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

    def __init__(
        self, entry: Entry, phase: int, seed: int, device: DeviceRows | None = None
    ) -> None:
        """Rows for a ``device`` stay bytes, which it transforms."""
        how = entry.preprocessing
        assert how is not None
        self.entry, self._resize, self._device = entry, how.resize, device
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

    def staged(self, rows: Array, first: int, device: DeviceRows | None) -> StagedRows | None:
        """Rows that the device transforms; None if the host is to do it."""
        if device is None or rows.dtype != np.uint8 or rows.ndim != 4 or self.entry.axis:
            return None
        staged = StagedRows(rows, self._transformation, first)
        return replace(staged, pinned=device.pin(rows)) if staged.is_sound else None

    def __call__(self, values: Array, first: int) -> Array | StagedRows:
        """Return the batch of rows as `Batches` has them."""
        rows = self.sized(shaped(self.entry.name, values, self.entry.stored))
        if (staged := self.staged(rows, first, self._device)) is not None:
            return staged
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

    def name_of(row: int) -> str:
        path = f" ('{clean(flat[row])}')" if isinstance(flat[row], str) else ""
        return f"column '{entry.name}': image {row}{path}"

    rows = raising(arrays.all(flat, name_of))
    if len({row.shape for row in rows}) > 1:
        raise DataError(f"column '{entry.name}' has images of several sizes: give resize")
    images = stacked(rows)
    return images.reshape(*values.shape, *images.shape[1:])


def raising(found: Sequence[Array | SparkNetError]) -> list[Array]:
    """Return the arrays; the first error is raised."""
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


def check_numbers(name: str, values: Array) -> None:
    """DataError if a column holds no numbers."""
    if values.dtype.kind in "fiub":
        return
    first = values.reshape(-1)[:1].tolist()
    what = f"values such as {first[0]!r}" if first else str(values.dtype)
    advice = ""
    if isinstance(values.flat[0] if values.size else None, str) and _is_number(values.flat[0]):
        advice = ": text is not read, numbers are: .astype(numpy.float32)"
    elif values.dtype.kind == "U" or (values.size and isinstance(values.flat[0], str)):
        advice = ": number the classes from 0, as numpy.unique(…, return_inverse=True) does"
    elif values.dtype.kind == "O":
        advice = ": objects are not read, an array of one type is: .astype(numpy.float32)"
    raise DataError(f"column '{name}' holds {what}, not numbers{advice}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def fits(shape: Shape, record: Pattern) -> bool:
    """Return whether a record has the wanted shape, where None is any size."""
    pairs = zip(shape, record, strict=False)
    return len(shape) == len(record) and all(want in (None, size) for size, want in pairs)


def fits_loosely(shape: Shape, record: Pattern) -> bool:
    """Return whether shapes are equal apart from axes of size 1: 28 x 28 fits 1 x 28 x 28."""
    return fits(
        tuple(size for size in shape if size != 1), tuple(size for size in record if size != 1)
    )


def fits_as_list(shape: Shape, record: Pattern) -> bool:
    """Return whether a record is a plain list of as many values as the pattern wants."""
    return len(shape) == 1 and None not in record and shape[0] == prod(size or 0 for size in record)


def shaped(name: str, values: Array, record: Pattern) -> Array:
    """Return rows in a record's shape; only axes of size 1 and plain lists may differ from it."""
    shape = values.shape[1:]
    if fits(shape, record):
        return values
    if record[:1] == (1,) and fits(shape, record[1:]):
        return values[:, np.newaxis]
    if None not in record and (fits_loosely(shape, record) or fits_as_list(shape, record)):
        return values.reshape(len(values), *(size for size in record if size is not None))
    raise DataError(misfit(name, shape, record))


def misfit(name: str, shape: Shape, record: Pattern) -> str:
    """Return the message about a record of another shape, with advice."""
    expected = " x ".join("any" if size is None else str(size) for size in record) or "one number"
    hint = ""
    if len(shape) == len(record) == 3:
        if shape[2] == record[0] != shape[0]:
            hint = "; channels come first, so transpose it"
        elif shape[0] == record[0]:
            hint = "; resize or crop it"
    elif None not in record and prod(shape) == prod(size or 0 for size in record):
        hint = "; arrange it so first"
    return f"column '{name}': a record is {shape_text(shape)}, the net wants {expected}{hint}"
