"""Parquet files of what `sparknet predict` and `features` compute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import extra

if TYPE_CHECKING:
    from pathlib import Path

    from sparknet.cli.answers import Answer

_ROWS = 1024
"""Answers that are written at a time."""


class ParquetWriter:
    """Writes tables of one schema, that of the first, to a file that gets its name at the end."""

    def __init__(self, stack: ExitStack, path: str) -> None:
        from sparknet.proto.byte_source import replacing

        self._draft: Path = stack.enter_context(replacing(path))
        self._stack = stack
        self._writer: Any = None

    def add(self, columns: dict[str, Any]) -> None:
        """Add rows: a column of numbers, of arrays or of lists of dicts each."""
        pa, pq = _pyarrow()
        table = pa.table({name: _column(pa, values) for name, values in columns.items()})
        if self._writer is None:
            self._writer = self._stack.enter_context(pq.ParquetWriter(self._draft, table.schema))
        self._writer.write_table(table)


def write_answers(path: str, found: Iterator[list[Answer]]) -> None:
    """A row for each input: its name, and a column for each output.

    A column holds the best classes as structs (label, name, score), or all values.
    """
    with ExitStack() as stack:
        writer = ParquetWriter(stack, path)
        rows: list[list[Answer]] = []
        for row in found:
            rows.append(row)
            if len(rows) == _ROWS:
                writer.add(_columns(rows))
                rows = []
        if rows:
            writer.add(_columns(rows))


def _columns(rows: list[list[Answer]]) -> dict[str, Any]:
    columns: dict[str, Any] = {"input": [row[0].input for row in rows]}
    for number, answer in enumerate(rows[0]):
        told = [row[number] for row in rows]
        columns[answer.output] = (
            np.stack([one.values for one in told])
            if answer.classes is None
            else [
                [
                    {"label": best.number, "name": best.label, "score": best.score}
                    for best in one.classes or ()
                ]
                for one in told
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


def _pyarrow() -> tuple[Any, Any]:
    with extra("pyarrow", "parquet", "writing a Parquet file"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    return pa, pq
