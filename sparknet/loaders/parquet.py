"""Parquet files as records, by row groups; columns of a CSV or Parquet file by name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean, extra
from sparknet.loaders.blocks import MOST_GROWTH
from sparknet.loaders.records import Array, Batch, Column, Indices, Opened, Rows, rows_of
from sparknet.proto.byte_source import StrPath, open_file
from sparknet.proto.suggest import did_you_mean

LARGEST_GROUP = 1 << 30
"""Bytes."""
MOST_ROWS = 1 << 40
"""Of a row group."""
PIECE = 1 << 14
"""Rows."""


class Parquet(Opened):
    """One file; columns of numbers, and of lists of numbers that are all of one length.

    `shapes` gives lists a shape ({"data": (1, 28, 28)}).  Only the row group that was read last
    is kept, so a shuffled order reads groups again and again: convert to blocks first.
    """

    def __init__(
        self,
        path: StrPath,
        names: Sequence[str] | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:
        self.path = str(path)
        self._shapes = dict(shapes or {})
        self._file = _open(self.path)
        metadata = self._file.metadata
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if min(sizes, default=0) < 0 or max(sizes, default=0) > MOST_ROWS:
            raise FileError(path, f"says that its row groups have {clean(sizes)} rows")
        self._ends = np.cumsum(sizes, dtype=np.int64)
        if not sum(sizes):
            raise FileError(path, "holds no rows")
        file_names = self._file.schema_arrow.names
        self.names = list(names or file_names)
        for name in set(self.names) - set(file_names):
            raise FileError(path, f"has no column '{name}': {', '.join(file_names)}")
        self._group: tuple[int, Batch] = (-1, {})
        self._columns = {
            name: Column(values.dtype, values.shape[1:]) for name, values in self._load(0).items()
        }

    @property
    def columns(self) -> Mapping[str, Column]:
        return self._columns

    def __len__(self) -> int:
        return int(self._ends[-1])

    def take(self, indices: Indices) -> Batch:
        rows = rows_of(indices, len(self))
        groups = np.searchsorted(self._ends, rows, side="right")
        out = {
            name: np.empty((len(rows), *column.shape), column.dtype)
            for name, column in self._columns.items()
        }
        for group in np.unique(groups):
            mine = groups == group
            self._copy(out, mine, int(group), rows[mine])
        return out

    def _copy(self, out: Batch, mine: Any, group: int, rows: Rows) -> None:
        begin = int(self._ends[group - 1]) if group else 0
        loaded = self._load(group)
        for name, column in self._columns.items():
            if loaded[name].shape[1:] != column.shape or loaded[name].dtype != column.dtype:
                raise FileError(
                    self.path,
                    f"column '{name}' has rows of {loaded[name].shape[1:]} in row group {group}, "
                    f"{column.shape} in the first",
                )
            out[name][mine] = loaded[name][rows - begin]

    def _load(self, group: int) -> Batch:
        number, arrays = self._group
        if number != group:
            table = _reading(self.path, self._table, group)
            expected = int(self._ends[group] - (self._ends[group - 1] if group else 0))
            if table.num_rows != expected:
                raise FileError(
                    self.path,
                    f"row group {group} has {table.num_rows} rows, not {expected} as it says",
                )
            arrays = {name: self._array(name, table.column(name)) for name in self.names}
            self._group = group, arrays
        return arrays

    def _table(self, group: int) -> Any:
        """Read a row group piece by piece: runs of equal values take no room in a file."""
        import pyarrow as pa

        most = max(LARGEST_GROUP, MOST_GROWTH * Path(self.path).stat().st_size)
        pieces, size = [], 0
        for piece in self._file.iter_batches(PIECE, row_groups=[group], columns=self.names):
            pieces.append(piece)
            size += piece.nbytes
            if size > most:
                raise FileError(self.path, f"row group {group} holds more than {most} bytes")
        return pa.Table.from_batches(pieces)

    def _array(self, name: str, chunks: Any) -> Array:
        import pyarrow as pa

        column = chunks.combine_chunks()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        shape: tuple[int, ...] = (len(column),)
        while pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
            self._whole(name, column)
            values = column.flatten()
            size = len(values) // max(len(column), 1)
            if pa.types.is_list(column.type) and set(column.value_lengths().to_pylist()) != {size}:
                raise FileError(self.path, f"column '{name}' has lists of several lengths")
            shape, column = (*shape, size), values
        self._whole(name, column)
        kind = column.type
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        ):
            raise FileError(self.path, f"column '{name}' holds {kind}, not numbers")
        array: Array = column.to_numpy(zero_copy_only=False).reshape(shape)
        full_shape = self._shapes.get(name)
        if full_shape is None:
            return array
        if int(np.prod(full_shape)) != int(np.prod(shape[1:])):
            raise FileError(self.path, f"column '{name}' has rows of {shape[1:]}, not {full_shape}")
        return array.reshape(len(array), *full_shape)

    def _whole(self, name: str, column: Any) -> None:
        if column.null_count:
            raise FileError(self.path, f"column '{name}' has rows without a value")


def _open(path: str) -> Any:
    with extra("pyarrow", "parquet", "reading a Parquet file"):
        import pyarrow.parquet as pq
    return _reading(path, pq.ParquetFile, path)


def _reading(path: str, call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except FileError:
        raise
    except FileNotFoundError as error:
        raise FileError(path, "does not exist") from error
    except MemoryError:
        raise
    except Exception as error:
        raise FileError(path, f"cannot be read as Parquet: {clean(error)}") from error


SUFFIXES = (".csv", ".parquet")


def is_table(data: object) -> bool:
    """Return whether data is the path of a CSV or Parquet file, or a list of one."""
    if isinstance(data, (list, tuple)) and len(data) == 1:
        return is_table(data[0])
    return isinstance(data, (str, os.PathLike)) and Path(data).suffix.lower() in SUFFIXES


def read_table(data: Any, names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """Return these columns of a table, whole; nulls are NaN or None."""
    path = Path(data[0] if isinstance(data, (list, tuple)) else data)
    with extra("pyarrow", "parquet", "reading a table"):
        import pyarrow as pa
        from pyarrow import csv, parquet

    with open_file(path) as file:
        try:
            if path.suffix.lower() == ".csv":
                table = csv.read_csv(file)
                columns = table.column_names
            else:
                reader = parquet.ParquetFile(file)
                table, columns = reader.read(columns=list(names)), reader.schema_arrow.names
        except (pa.ArrowException, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise FileError(path, f"is no table that can be read: {reason}") from error
    for name in names:
        if name not in columns:
            raise FileError(path, f"has no column '{name}'{did_you_mean(name, columns)}")
    return {name: table.column(name).to_numpy() for name in names}
