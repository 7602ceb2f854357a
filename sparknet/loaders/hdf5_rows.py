"""Rows of HDF5 files, file after file, round and round (Caffe: hdf5_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.hdf5 import check_batch, open_dataset, open_hdf5
from sparknet.loaders.mapped import MOST_GROWTH

Array = np.ndarray[Any, np.dtype[np.float32]]
Row = tuple[int, ...]

LARGEST_HELD = 1 << 30
MOST_SHUFFLED = 1 << 27


class HDF5Rows:
    """Data sets of the same names in several files; shuffled, if at all, as Caffe does it: the
    files again in every round, the rows of a file each time it begins."""

    def __init__(
        self,
        files: Sequence[str],
        names: Sequence[str],
        shapes: Sequence[Row],
        shuffle: bool,
        seed: int,
    ) -> None:
        self.files, self.names, self.shapes = files, names, shapes
        self.rng = np.random.default_rng(seed) if shuffle else None
        self.order: list[int] = []
        self._columns: list[Any] = []
        self._rows: Any = range(0)
        self._at = 0
        self._held: str | None = None
        self._open: Any = None

    def fill(self, outs: Sequence[Array]) -> None:
        """The next rows of every data set."""
        done, count = 0, len(outs[0])
        while done < count:
            if self._at >= len(self._rows):
                self._next_file()
            rows = np.array(self._rows[self._at : self._at + count - done], np.int64)
            for out, column in zip(outs, self._columns, strict=True):
                self._read(out[done : done + len(rows)], column, rows)
            done += len(rows)
            self._at += len(rows)

    def skip(self, count: int) -> None:
        """Skip the next rows."""
        while count > 0:
            if self._at >= len(self._rows):
                self._next_file()
            step = min(count, len(self._rows) - self._at)
            self._at += step
            count -= step

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open, self._held, self._columns = None, None, []

    def _next_file(self) -> None:
        if not self.order:
            count = len(self.files)
            self.order = list(range(count) if self.rng is None else self.rng.permutation(count))
        name = self.files[self.order[0]]
        if name != self._held:
            self._load(name)
        count = len(self._columns[0])
        if self.rng is not None and count > MOST_SHUFFLED:
            raise FileError(name, f"holds {count} rows, which cannot be shuffled")
        self._rows = range(count) if self.rng is None else self.rng.permutation(count)
        self._at = 0
        self.order.pop(0)

    def _load(self, name: str) -> None:
        """Hold a file's data sets in memory, or keep the file open where they are large."""
        self.close()
        file = open_hdf5(name)
        try:
            wanted = zip(self.names, self.shapes, strict=True)
            columns = [self._column(file, name, dataset, shape) for dataset, shape in wanted]
            if len({len(column) for column in columns}) != 1 or len(columns[0]) == 0:
                sizes = ", ".join(str(len(column)) for column in columns)
                raise FileError(name, f"its data sets must hold as many rows; they hold {sizes}")
            size = sum(column.size * 4 for column in columns)
            if size <= min(LARGEST_HELD, MOST_GROWTH * Path(name).stat().st_size):
                columns = [_values(column, name) for column in columns]
        except BaseException:
            file.close()
            raise
        if isinstance(columns[0], np.ndarray):
            file.close()
        else:
            self._open = file
        self._columns, self._held = columns, name

    def _column(self, file: Any, name: str, dataset: str, shape: Row) -> Any:
        column = open_dataset(file, name, dataset)
        if column.shape[1:] != shape:
            wanted = " x ".join(map(str, ("N", *shape)))
            raise FileError(name, f"data set '{dataset}' is {column.shape}, not {wanted} numbers")
        return column

    def _read(self, out: Array, column: Any, rows: Any) -> None:
        if isinstance(column, np.ndarray):
            np.take(column, rows, axis=0, out=out)
            return
        check_batch(str(self._held), column.name.lstrip("/"), column, len(rows))
        # HDF5 wants rows in ascending order.
        order = np.argsort(rows)
        wanted = rows[order]
        whole = len(rows) == wanted[-1] - wanted[0] + 1
        try:
            out[order] = column[wanted[0] : wanted[-1] + 1] if whole else column[wanted]
        except (OSError, RuntimeError, ValueError) as error:
            raise FileError(self._held, f"cannot be read: {error}") from error


def _values(column: Any, name: str) -> Array:
    try:
        return np.asarray(column[()], np.float32)
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(name, f"cannot be read: {error}") from error
