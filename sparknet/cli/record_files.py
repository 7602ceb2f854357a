"""Writers of records: databases, Parquet files and tables of features."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import FileError, extra

if TYPE_CHECKING:
    from sparknet.cli.predictions import PrintedOutput
    from sparknet.loaders import Records
    from sparknet.loaders.datums import Mean

_ROWS = 1024
"""Answers that are written at a time."""


@contextmanager
def parquet_writer(path: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Yield what adds rows to a file, whose schema is that of the first rows."""
    from sparknet.atomic_files import atomic_file

    with extra("pyarrow", "parquet", "writing a Parquet file"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    with ExitStack() as stack:
        draft = stack.enter_context(atomic_file(path))
        writers: list[Any] = []

        def add(columns: dict[str, Any]) -> None:
            table = pa.table({name: _column(pa, values) for name, values in columns.items()})
            if not writers:
                writers.append(stack.enter_context(pq.ParquetWriter(draft, table.schema)))
            writers[0].write_table(table)

        yield add


def write_answers(path: str, found: Iterator[list[PrintedOutput]]) -> None:
    """Write a row for each input: its name, and a column of values or best classes each."""
    with parquet_writer(path) as add:
        while rows := list(islice(found, _ROWS)):
            add(_columns(rows))


def _columns(rows: list[list[PrintedOutput]]) -> dict[str, Any]:
    columns: dict[str, Any] = {"input": [row[0].input for row in rows]}
    for number, answer in enumerate(rows[0]):
        answers = [row[number] for row in rows]
        columns[answer.output] = (
            np.stack([one.values for one in answers])
            if answer.classes is None
            else [
                [
                    {"label": best.number, "name": best.label, "score": best.score}
                    for best in one.classes or ()
                ]
                for one in answers
            ]
        )
    return columns


def _column(pa: Any, values: Any) -> Any:
    if isinstance(values, np.ndarray):
        rows = np.asarray(values, np.float32).reshape(len(values), -1)
        if rows.shape[1] == 1 and values.ndim == 1:
            return pa.array(rows[:, 0])
        ends = np.arange(0, rows.size + 1, max(rows.shape[1], 1), dtype=np.int64)
        return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(rows.ravel()))
    if values and isinstance(values[0], str):
        return pa.array(values)
    fields = [("label", pa.int32()), ("name", pa.string()), ("score", pa.float32())]
    return pa.array(values, pa.list_(pa.struct(fields)))


Record = tuple[str, Any, int]
"""The end of the key, an image or its encoded bytes, and the label."""
AT_ONCE = 256


def write_records(chosen: Namespace, records: Records) -> int:
    """Write the chosen part of records; a block file gets all their columns."""
    from sparknet.loaders import Subset, mean_of, write_blocks
    from sparknet.proto import write_blob

    if chosen.to != "blocks":
        return write(chosen, _rows(records, chosen.out))
    stop = len(records) if chosen.take is None else chosen.skip + chosen.take
    part = (
        Subset(records, slice(chosen.skip, stop))
        if chosen.skip or chosen.take is not None
        else records
    )
    count = write_blocks(chosen.out, part)
    if chosen.mean:
        write_blob(chosen.mean, mean_of(part), legacy=True)
    return _message(chosen.out, count)


def write(chosen: Namespace, items: Iterable[Record]) -> int:
    """Write the chosen part of images, one by one."""
    from sparknet.loaders import write_blocks
    from sparknet.loaders.datums import Mean
    from sparknet.proto import write_blob

    if chosen.mean and getattr(chosen, "encoded", False):
        raise FileError(
            chosen.mean, "--mean needs decoded images: run 'sparknet convert mean' after"
        )
    mean = Mean() if chosen.mean else None
    stop = None if chosen.take is None else chosen.skip + chosen.take
    part = _add_to_mean(islice(items, chosen.skip, stop), mean, chosen.out)
    if chosen.to == "blocks":
        count = write_blocks(chosen.out, _batches(part, chosen.out))
    else:
        count = write_database(chosen.out, _datums(part))
    if mean is not None:
        if not mean.count:
            raise FileError(chosen.mean, "cannot be the mean of no image")
        write_blob(chosen.mean, mean.value, legacy=True)
    return _message(chosen.out, count)


def write_database(path: str, records: Iterable[tuple[bytes, bytes]]) -> int:
    """Write a new LMDB of these records, in the order of their keys; returns their number."""
    from sparknet.loaders.lmdb import new_lmdb

    with new_lmdb(path) as database:
        for key, value in records:
            database.put(key, value)
    return database.entries


def _rows(records: Records, out: str) -> Iterator[Record]:
    from sparknet.loaders import one_pass

    columns = records.columns
    if "data" not in columns or "label" not in columns or len(columns["data"].shape) != 3:
        raise FileError(
            out, "can hold data of channels x height x width and labels; use --to blocks"
        )
    for batch in one_pass(records, AT_ONCE):
        for image, label in zip(batch["data"], batch["label"], strict=True):
            yield "", image, int(label)


def _add_to_mean(items: Iterable[Record], mean: Mean | None, out: str) -> Iterator[Record]:
    """Yields the items, and adds each to the mean."""
    for item in items:
        if mean is not None:
            try:
                mean.add(item[1][None])
            except ValueError as error:
                raise FileError(out, f"has no mean: {error}") from error
        yield item


def _batches(items: Iterable[Record], out: str) -> Iterator[dict[str, Any]]:
    items = iter(items)
    while part := list(islice(items, AT_ONCE)):
        shapes = {image.shape for _, image, _ in part}
        if len(shapes) > 1:
            raise FileError(out, f"needs images of one size, not {sorted(shapes)}: use --resize")
        labels = np.array([label for _, _, label in part], np.int32)
        yield {"data": np.stack([image for _, image, _ in part]), "label": labels}


def datums(records: Records, out: str) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a database of all these records."""
    return _datums(_rows(records, out))


def _datums(items: Iterable[Record]) -> Iterator[tuple[bytes, bytes]]:
    from sparknet.loaders.datums import datum_bytes, encoded_bytes

    for number, (suffix, image, label) in enumerate(items):
        value = (
            encoded_bytes(image, label) if isinstance(image, bytes) else datum_bytes(image, label)
        )
        yield f"{number:08d}{suffix}".encode("utf-8", "surrogateescape")[:511], value


def _message(out: str, count: int) -> int:
    print(f"{out}: {count} records", file=sys.stderr)
    return 0
