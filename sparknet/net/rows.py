"""Data of any kind as blocks of rows: column → array, one row a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from sparknet.errors import DataError
from sparknet.layers import Shape
from sparknet.layers.layer import shape_text
from sparknet.net.entries import DUMMY, Entry

Array = np.ndarray[Any, Any]
Block = dict[str, Array]
Pattern = tuple[int | None, ...]


class Rows:
    """Where records come from, in order."""

    def __init__(
        self,
        blocks: Callable[[int], Iterator[Block]],
        shapes: Mapping[str, Shape],
        again: bool,
    ) -> None:
        self.blocks = blocks
        """Blocks of about as many rows as it is told; from the beginning if `again`."""
        self.shapes = shapes
        """The columns, and what the first record looks like."""
        self.again = again


Entries = Callable[[], Sequence[Entry] | None]
"""The entries of a net; None while the shapes of records are not known."""


def open_rows(data: Any, entries: Entries, names: Sequence[str]) -> Rows:
    """Rows of loaders' Records, of whole columns, or of an iterable of records or batches."""
    if hasattr(data, "columns") and hasattr(data, "take"):
        return _of_records(data)
    if isinstance(data, (Mapping, tuple)) or _is_array(data):
        return _of_columns(columns_of(data, names))
    if hasattr(data, "next") and not hasattr(data, "__iter__"):
        data = iter(data.next, None)
    if not isinstance(data, Iterable) or isinstance(data, (str, bytes)):
        raise DataError(f"a {type(data).__name__} is no data: give records, batches or arrays")
    return _of_items(data, entries, names)


def default_columns(tops: Sequence[tuple[str, str]]) -> list[str]:
    """What the places of a tuple are called: the entries in order, DummyData's last."""
    return [name for name, kind in sorted(tops, key=lambda top: top[1] == DUMMY)]


def _of_records(records: Any) -> Rows:
    def blocks(size: int) -> Iterator[Block]:
        for begin in range(0, len(records), size):
            numbers = np.arange(begin, min(begin + size, len(records)), dtype=np.int64)
            yield {name: np.asarray(rows) for name, rows in records.take(numbers).items()}

    shapes = {name: tuple(column.shape) for name, column in records.columns.items()}
    return Rows(blocks, shapes, again=True)


def _of_columns(columns: Block) -> Rows:
    length = rows_of(columns)

    def blocks(size: int) -> Iterator[Block]:
        for begin in range(0, length, size):
            yield {name: values[begin : begin + size] for name, values in columns.items()}

    return Rows(blocks, {name: values.shape[1:] for name, values in columns.items()}, again=True)


def rows_of(block: Block) -> int:
    """The number of records, which all columns must agree on."""
    lengths = {name: len(values) if values.ndim else -1 for name, values in block.items()}
    if len(set(lengths.values())) > 1 or -1 in lengths.values():
        told = ", ".join(f"'{name}' has {max(size, 0)}" for name, size in lengths.items())
        raise DataError(f"the columns differ in their number of records: {told}")
    return next(iter(lengths.values()), 0)


def _of_items(data: Iterable[Any], entries: Entries, names: Sequence[str]) -> Rows:
    again = iter(data) is not data
    first: list[Any] = []
    items: Iterator[Any] = iter(data)
    for item in items:
        first.append(item)
        break
    if not first:
        raise DataError("the data is empty")
    columns = columns_of(first[0], names)
    skipped = 1 if is_batch(columns, entries()) else 0
    shapes = {name: values.shape[skipped:] for name, values in columns.items()}
    rest = chain(first, items)

    def blocks(size: int) -> Iterator[Block]:
        return _grouped(iter(data) if again else rest, entries(), names, size)

    return Rows(blocks, shapes, again)


def _grouped(
    items: Iterator[Any], entries: Sequence[Entry] | None, names: Sequence[str], size: int
) -> Iterator[Block]:
    """Items as blocks: a batch is one, records are put together."""
    records: list[Block] = []
    for item in items:
        columns = columns_of(item, names)
        if is_batch(columns, entries):
            if records:
                yield _stacked(records)
                records = []
            yield columns
            continue
        records.append(columns)
        if len(records) == size:
            yield _stacked(records)
            records = []
    if records:
        yield _stacked(records)


def _stacked(records: Sequence[Block]) -> Block:
    block = {}
    for name, first in records[0].items():
        for number, record in enumerate(records):
            if name not in record:
                raise DataError(f"record {number} of a batch has no column '{name}'")
            if record[name].shape != first.shape:
                raise DataError(
                    f"column '{name}': a record is {shape_text(record[name].shape)}, "
                    f"one before it is {shape_text(first.shape)}"
                )
        block[name] = np.stack([record[name] for record in records])
    return block


def columns_of(item: Any, names: Sequence[str]) -> Block:
    """An item by column: a mapping has names, the parts of a tuple stand in the entries' order."""
    if isinstance(item, Mapping):
        return {str(name): np.asarray(values) for name, values in item.items()}
    parts = list(item) if isinstance(item, (tuple, list)) else [item]
    if len(parts) > len(names):
        raise DataError(
            f"a record has {len(parts)} parts, the net has {len(names)} inputs: {names}"
        )
    return {name: np.asarray(part) for name, part in zip(names, parts, strict=False)}


def _is_array(data: Any) -> bool:
    return hasattr(data, "shape") and hasattr(data, "dtype")


def is_batch(columns: Block, entries: Sequence[Entry] | None) -> bool:
    """Whether an item is many records; the column with most axes tells."""
    known = [entry for entry in entries or () if entry.name in columns]
    if not known:  # images, as far as anybody can tell
        return max((values.ndim for values in columns.values()), default=0) > 3
    entry = max(known, key=lambda entry: len(entry.shape))
    shape, record = columns[entry.name].shape, entry.stored
    if fits(shape, record):
        return False
    if fits(shape[1:], record):
        return True
    if fits_loosely(shape, record):
        return False
    return len(shape) > len(record) or fits_loosely(shape[1:], record)


def fits(shape: Shape, record: Pattern) -> bool:
    pairs = zip(shape, record, strict=False)
    return len(shape) == len(record) and all(want in (None, size) for size, want in pairs)


def fits_loosely(shape: Shape, record: Pattern) -> bool:
    """Axes of size 1 aside: 28 x 28 is 1 x 28 x 28."""
    return fits(
        tuple(size for size in shape if size != 1), tuple(size for size in record if size != 1)
    )
