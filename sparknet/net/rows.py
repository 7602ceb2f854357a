"""Rows: data of any kind as blocks of rows, column → array with one row per record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sparknet.errors import DataError, SpecError
from sparknet.layers import Shape
from sparknet.layers.layer import shape_text
from sparknet.loaders.image_files import in_grey
from sparknet.loaders.opening import open_images
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import ArrayRecords, NamedFor, Records
from sparknet.net.entries import DataTop, Entry
from sparknet.net.feed import ENCODED, Array, fits, fits_as_list, fits_loosely
from sparknet.proto.byte_source import StrPath

Block = dict[str, Array]


class Frame(Protocol):
    """A DataFrame of pandas."""

    @property
    def iloc(self) -> object: ...
    @property
    def columns(self) -> Iterable[object]: ...


Record: TypeAlias = Mapping[str, ArrayLike] | tuple[ArrayLike, ...] | ArrayLike
"""A record or a batch: values by name, or in the order of the net's inputs."""

Data: TypeAlias = (
    StrPath | Records | Mapping[str, ArrayLike] | tuple[ArrayLike, ...] | Frame | Iterable[Record]
)
"""Records in any form: docs/data.md."""

Entries = Callable[[], Sequence[Entry] | None]
"""The entries of a net; None while the shapes of its records are not known."""


class Rows:
    """A source of records, in order."""

    def __init__(
        self,
        blocks: Callable[[int, int, int], Iterator[Block]],
        again: bool,
        shapes: Callable[[], Mapping[str, Shape]],
    ) -> None:
        self.blocks = blocks
        """Yields blocks: the first of about the first number of rows, others of the second; starts
        from the beginning if `again`, behind as many records as the third number says."""
        self.again = again
        self.shapes = shapes
        """The columns, and the shape of a record in each."""


def open_rows(
    data: Any, entries: Entries, names: Sequence[str], how: Preprocessing | None = None
) -> Rows:
    """Return the rows of data in any form; ``names`` are a tuple's parts, ``how`` is for images."""
    if isinstance(data, (str, os.PathLike)):
        data = open_images(os.fspath(data), how)
    if hasattr(data, "toLocalIterator"):
        return _of_items(_OfSpark(data), entries, names)
    if isinstance(getattr(data, "columns", None), Mapping) and hasattr(data, "take"):
        return _of_records(for_inputs(data, entries(), names))
    is_array = hasattr(data, "shape") and hasattr(data, "dtype")
    if isinstance(data, (Mapping, tuple)) or is_array:
        return _of_columns(columns_of(data, names))
    if is_frame(data):
        return _of_columns(frame_columns(data, names))
    if isinstance(data, bytes) or hasattr(data, "to_numpy"):
        raise DataError(f"a {type(data).__name__} is not data: give records, batches or arrays")
    if not isinstance(data, Iterable):
        raise DataError(f"a {type(data).__name__} is not data: it cannot be iterated")
    return _of_items(data, entries, names)


def for_inputs(records: Records, entries: Sequence[Entry] | None, names: Sequence[str]) -> Records:
    """Return a reader's records, named for a net, with grey images for inputs of one channel."""
    return NamedFor.inputs(in_channels(records, lambda: entries or ()), names)


def in_channels(records: Records, entries: Callable[[], Iterable[Entry]]) -> Records:
    """Records with images in grey, if that is what the inputs take."""
    try:
        grey = in_grey(records)
    except SpecError:  # their settings are for three channels
        return records
    if grey is records:
        return records
    images = [entry for entry in entries() if len(entry.record) == 3 and not entry.is_label]
    return grey if {entry.record[0] for entry in images} == {1} else records


def is_frame(data: object) -> bool:
    """Return whether it is a DataFrame of pandas."""
    return hasattr(data, "iloc") and hasattr(data, "columns")


def frame_columns(data: Any, names: Sequence[str | None]) -> Block:
    """Return columns of a pandas DataFrame as arrays; lists in a column are stacked."""
    columns = {}
    for name in data.columns:
        if name not in names:
            continue
        values = data[name].to_numpy()
        if values.dtype == object and len(values) and not isinstance(values[0], (str, bytes)):
            try:
                values = np.stack([np.asarray(one) for one in values])
            except ValueError as error:
                raise DataError(f"column '{name}' is no array: {error}") from error
        columns[str(name)] = values
    if not columns:
        there = ", ".join(f"'{name}'" for name in data.columns)
        raise DataError(
            f"the data has none of the columns {', '.join(filter(None, names))}: it has {there}"
        )
    return columns


def default_columns(places: Iterable[DataTop]) -> list[str]:
    """Return the names of a tuple's parts: the places in order, DummyData's last."""
    return [place.name for place in sorted(places, key=lambda place: place.kind.fills_itself)]


def columns_of(item: Any, names: Sequence[str]) -> Block:
    """Return an item's values by column: by name for a mapping or named tuple, else in order."""
    if hasattr(item, "_asdict"):
        item = item._asdict()
    elif hasattr(item, "__fields__"):  # a Row of Spark
        item = item.asDict()
    if isinstance(item, Mapping):
        return {str(name): _array(name, values) for name, values in item.items()}
    fields = getattr(getattr(item, "dtype", None), "names", None)
    if fields:
        return {name: np.asarray(item[name]) for name in fields}
    parts = list(item) if isinstance(item, (tuple, list)) else [item]
    if len(parts) > len(names):
        listing = ", ".join(f"'{name}'" for name in names)
        raise DataError(f"a record has {len(parts)} parts, the net's inputs are {listing}")
    return {name: _array(name, part) for name, part in zip(names, parts, strict=False)}


def rows_of(block: Block) -> int:
    """Return the number of records, which must be equal in all columns."""
    lengths = set()
    for name, values in block.items():
        if not values.ndim:
            raise DataError(f"column '{name}' is {values!r}, not one value for each record")
        lengths.add(len(values))
    if len(lengths) > 1:
        listing = ", ".join(f"'{name}' has {len(values)}" for name, values in block.items())
        raise DataError(f"the columns differ in their number of records: {listing}")
    return next(iter(lengths), 0)


def _of_columns(columns: Block) -> Rows:
    _refuse_empty(rows_of(columns))
    return _of_records(ArrayRecords(**columns))


def _of_records(records: Any) -> Rows:
    def blocks(first: int, size: int, skip: int) -> Iterator[Block]:
        begin, end = skip, skip + first
        while begin < len(records):
            yield records.take(slice(begin, min(end, len(records))))
            begin, end = end, end + size

    def shapes() -> Mapping[str, Shape]:
        return {name: tuple(column.shape) for name, column in records.columns.items()}

    _refuse_empty(len(records))
    return Rows(blocks, True, shapes)


class _OfSpark:
    """The records of an RDD or a DataFrame, which come to this process partition by partition."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __iter__(self) -> Iterator[Any]:
        return iter(self._data.toLocalIterator(prefetchPartitions=True))


def _of_items(items: Iterable[Any], entries: Entries, names: Sequence[str]) -> Rows:
    """Rows of a collection, or of an iterator, which runs once: only `shapes` reads ahead."""
    again, rest = iter(items) is not items, items

    def shapes() -> Mapping[str, Shape]:
        nonlocal rest
        ahead = list(islice(iter(rest), 1))
        _refuse_empty(len(ahead))
        rest = items if again else chain(ahead, rest)
        columns = columns_of(ahead[0], names)
        first = 1 if is_batch(columns, entries()) else 0
        return {name: values.shape[first:] for name, values in columns.items()}

    def blocks(first: int, size: int, skip: int) -> Iterator[Block]:
        return _grouped(_after(rest, skip, entries(), names), entries(), names, first, size)

    return Rows(blocks, again, shapes)


def _after(
    items: Iterable[Any], skip: int, entries: Sequence[Entry] | None, names: Sequence[str]
) -> Iterator[Any]:
    """Iterate over items without their first ``skip`` records, by ``starting`` if there is one."""
    source, ahead = iter(items), list[Any]()
    while skip and (ahead := list(islice(source, 1))):
        columns = columns_of(ahead[0], names)
        if not is_batch(columns, entries):
            starting = getattr(items, "starting", None)
            return iter(starting(skip)) if starting else islice(source, skip - 1, None)
        length = rows_of(columns)
        ahead = [{name: values[skip:] for name, values in columns.items()}]
        skip -= min(skip, length)
    return chain(ahead, source)


def _refuse_empty(length: int) -> None:
    if not length:
        raise DataError("the data is empty")


def _grouped(
    items: Iterator[Any],
    entries: Sequence[Entry] | None,
    names: Sequence[str],
    first: int,
    size: int,
) -> Iterator[Block]:
    """Yields items as blocks: a batch is a block, records are collected into one."""
    records: list[Block] = []
    room = first
    for item in items:
        columns = columns_of(item, names)
        batch = is_batch(columns, entries)
        if not batch:
            if records and _differs(columns, records[0]):  # a text of another length
                yield _stacked(records)
                records, room = [], size
            records.append(columns)
        if records and (batch or len(records) == room):
            yield _stacked(records)
            records, room = [], size
        if batch:
            yield columns
    if records:
        yield _stacked(records)


def _differs(record: Block, other: Block) -> bool:
    shared = record.keys() & other.keys()
    return any(record[name].shape != other[name].shape for name in shared)


def _stacked(records: Sequence[Block]) -> Block:
    for number, record in enumerate(records):
        if missing := set(records[0]) - set(record):
            raise DataError(f"record {number} of a batch has no column '{min(missing)}'")
    return {name: np.stack([record[name] for record in records]) for name in records[0]}


def _array(name: object, values: Any) -> Array:
    if isinstance(values, bytes) or (
        isinstance(values, (list, tuple)) and values and isinstance(values[0], bytes)
    ):
        return np.array(values, object)  # numpy's own strings lose zeros at the end
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DataError(f"column '{name}' is no array: {error}") from error


def is_batch(columns: Block, entries: Sequence[Entry] | None) -> bool:
    """Return whether an item is a batch of records, by its column with the most axes."""
    inputs = [entry for entry in entries or () if entry.name in columns]
    if not inputs:  # images, as a guess
        return max((values.ndim for values in columns.values()), default=0) > 3
    entry = max(inputs, key=lambda entry: len(entry.shape))
    shape, record = columns[entry.name].shape, entry.stored
    if columns[entry.name].dtype.kind in ENCODED:
        return len(shape) > 0
    for fit in (fits, fits_loosely, fits_as_list):
        if fit(shape, record):
            return False
        if fit(shape[1:], record):
            return True
    # No record of the net: the other columns may say how many there are.
    return len(shape) > len(record) or any(
        columns[other.name].ndim == len(other.stored) + 1
        and fits(columns[other.name].shape[1:], other.stored)
        for other in inputs
    )


class Stream:
    """Reads rows from where the last batch ended; first it passes over ``skip`` records.

    An endless stream starts again after the last record, so that every batch is full.  Rows that
    cannot be read again end with a shorter batch, and then an error."""

    def __init__(self, rows: Rows, endless: bool, what: str, skip: int = 0) -> None:
        self._rows, self._endless, self._what = rows, endless, what
        self.position = skip
        """The number of records since the data began, or began again."""
        self._blocks: Iterator[Block] | None = None
        self._rest: Block = {}
        self.taken = 0

    def take(self, count: int) -> Block | None:
        """Return the next `count` records, fewer where the data ends, None after its end."""
        parts: list[Block] = []
        missing = count
        while missing:
            block = self._next(missing, count)
            if block is None:
                break
            length = rows_of(block)
            if length > missing:
                self._rest = {name: values[missing:] for name, values in block.items()}
                block = {name: values[:missing] for name, values in block.items()}
            parts.append(block)
            self.position += min(length, missing)
            missing -= min(length, missing)
        if not parts and self._endless:
            raise DataError(f"the {self._what} ended after {self.taken} records")
        self.taken += count - missing
        return _joined(parts) if parts else None

    def _next(self, missing: int, size: int) -> Block | None:
        """Return the next rows, None at the end; rows after a restart fill the batch up."""
        if self._rest:
            rest, self._rest = self._rest, {}
            return rest
        for _ in range(2):
            if self._blocks is None:
                self._blocks = self._rows.blocks(missing, size, self.position)
            for block in self._blocks:
                if rows_of(block):
                    return block
            if not (self._endless and self._rows.again):
                return None
            self._blocks, self.position = None, 0
        raise DataError(f"the {self._what} is empty")


def _joined(parts: list[Block]) -> Block:
    if len(parts) == 1:
        return parts[0]
    for part in parts[1:]:
        missing = set(parts[0]) - set(part)
        if missing:
            raise DataError(f"a batch has no column '{min(missing)}'")
        for name, values in parts[0].items():
            shape, before = part[name].shape[1:], values.shape[1:]
            if shape != before:
                raise DataError(
                    f"column '{name}': a record is {shape_text(shape)}, one before it is "
                    f"{shape_text(before)}"
                )
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
