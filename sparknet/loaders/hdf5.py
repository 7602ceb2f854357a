"""HDF5 files as data sources, as records, and as results."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean
from sparknet.loaders.blocks import MOST_GROWTH
from sparknet.loaders.records import Array, Batch, Column, Indices, Opened, Rows, rows_of
from sparknet.proto.byte_source import StrPath, check_is_file
from sparknet.proto.hdf5 import h5py_module, linked, own_dataset

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
        """Read the next rows of every data set."""
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
            expected = zip(self.names, self.shapes, strict=True)
            columns = [self._column(file, name, dataset, shape) for dataset, shape in expected]
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
            expected = " x ".join(map(str, ("N", *shape)))
            raise FileError(name, f"data set '{dataset}' is {column.shape}, not {expected} numbers")
        return column

    def _read(self, out: Array, column: Any, rows: Any) -> None:
        if isinstance(column, np.ndarray):
            np.take(column, rows, axis=0, out=out)
            return
        check_batch(str(self._held), column.name.lstrip("/"), column, len(rows))
        read_rows(column, rows, out, str(self._held))


def _values(column: Any, name: str) -> Array:
    try:
        return np.asarray(column[()], np.float32)
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(name, f"cannot be read: {error}") from error


LARGEST_LIST = 1 << 26
LARGEST_RECORD = 1 << 28
"""Bytes.  A small file can announce rows of any size: what was never written reads as zeros."""
LARGEST_BATCH = 1 << 30
"""Bytes that one batch may take whatever the file stores."""
MOST_UNPACKED = 64
"""A batch larger than that may be this many times what the file stores of its data set."""


def read_list(path: str) -> list[str]:
    """Return the file names in a list, one to a word (Caffe: hdf5_data_layer.cpp)."""
    file = Path(path)
    check_is_file(path)
    if file.stat().st_size > LARGEST_LIST:
        raise FileError(path, "is too long for a list of files")
    return file.read_text(encoding="utf-8", errors="surrogateescape").split()


def dataset_shapes(path: str, names: Sequence[str], batch: int) -> list[tuple[int, ...]]:
    """Return the shapes of data sets that are to be read in batches; only the headers are read."""
    with open_hdf5(path) as file:
        datasets = [open_dataset(file, path, name) for name in names]
        for name, dataset in zip(names, datasets, strict=True):
            check_batch(path, name, dataset, batch)
        return [dataset.shape for dataset in datasets]


def open_hdf5(path: str) -> Any:
    """Return an HDF5 file for reading."""
    h5py = h5py_module("reading an HDF5 file")
    check_is_file(path)
    try:
        return h5py.File(path, "r")
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(path, f"is no HDF5 file that can be read: {clean(error)}") from error


def open_dataset(file: Any, path: str, name: str) -> Any:
    """Return a data set of numbers in the file itself, checked before memory is taken."""
    what = f"data set '{clean(name)}'"
    *groups, last = [part for part in name.split("/") if part] or [name]
    try:
        group = file
        for part in groups:
            group = linked(group, part, path)
        dataset = own_dataset(group, last, path, what)
        _check_values(dataset, path, what)
        return dataset
    except FileError:
        raise
    except Exception as error:  # h5py raises nearly every builtin exception for a damaged file
        raise FileError(path, f"has no {what} that can be read: {clean(error)}") from error


def _check_values(dataset: Any, path: str, what: str) -> None:
    if dataset.dtype.kind not in "fiu":
        raise FileError(path, f"{what} holds no numbers")
    if not dataset.shape:
        raise FileError(path, f"{what} needs at least 1 axis")
    row = dataset.dtype.itemsize * prod(dataset.shape[1:])
    claimed, stored = row * dataset.shape[0], stored_bytes(dataset)
    if row > LARGEST_RECORD:
        raise FileError(path, f"{what} has rows of {row} bytes")
    if claimed > LARGEST_BATCH + MOST_GROWTH * stored:
        raise FileError(path, f"{what} claims {claimed} bytes of values, the file stores {stored}")
    chunk = dataset.dtype.itemsize * prod(dataset.chunks or ())
    if chunk > LARGEST_BATCH:
        raise FileError(path, f"{what} has chunks of {chunk} bytes")


def check_batch(path: str, name: str, dataset: Any, count: int) -> None:
    """Refuses more rows at once than memory should be taken for."""
    size = count * dataset.dtype.itemsize * prod(dataset.shape[1:])
    stored = stored_bytes(dataset)
    if size > max(LARGEST_BATCH, MOST_UNPACKED * stored):
        raise FileError(
            path,
            f"{count} rows of data set '{clean(name)}' are {size} bytes, of which the file stores "
            f"{stored}: take fewer at once",
        )


def read_rows(dataset: Any, rows: Rows, out: Array, path: str) -> None:
    """Read rows in any order; HDF5 wants each once, in ascending order."""
    ordered, places = np.unique(rows, return_inverse=True)
    if not len(ordered):
        return
    whole = len(ordered) == ordered[-1] - ordered[0] + 1
    try:
        values = dataset[ordered[0] : ordered[-1] + 1] if whole else dataset[ordered]
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(path, f"cannot be read: {clean(error)}") from error
    out[...] = values[places.reshape(-1)]


def stored_bytes(dataset: Any) -> int:
    return int(min(dataset.id.get_storage_size(), dataset.file.id.get_filesize()))


def append_rows(path: str, rows: Mapping[str, Any], new_file: bool) -> None:
    """Add rows to the data sets of a file; ``new_file`` starts a new file."""
    h5py = h5py_module("writing an HDF5 file")
    try:
        with h5py.File(path, "w" if new_file else "a") as file:
            for name, values in rows.items():
                if name in file:
                    before = len(file[name])
                    if file[name].shape[1:] != values.shape[1:]:
                        raise FileError(
                            path,
                            f"data set '{name}' has rows of {file[name].shape[1:]}; "
                            f"{values.shape[1:]} cannot be added",
                        )
                    file[name].resize(before + len(values), axis=0)
                    file[name][before:] = values
                else:
                    chunk = tuple(max(size, 1) for size in values.shape)
                    max_shape = (None, *values.shape[1:])
                    file.create_dataset(name, data=values, maxshape=max_shape, chunks=chunk)
    except FileError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(path, f"cannot be written: {error}") from error


class HDF5File(Opened):
    """One file; the columns are its data sets of as many rows as the first, or those named.

    Rows are read when they are taken.  Of a compressed file each batch in a shuffled order
    unpacks a whole chunk a row: convert it to blocks first.
    """

    def __init__(self, path: StrPath, names: Sequence[str] | None = None) -> None:
        self.path = str(path)
        with open_hdf5(self.path) as file:
            self.names = list(names or _numeric(file, self.path))
            if not self.names:
                raise FileError(path, "holds no data sets of numbers")
            datasets = [open_dataset(file, self.path, name) for name in self.names]
            shapes = [dataset.shape for dataset in datasets]
            if len({shape[0] for shape in shapes}) != 1:
                listed = ", ".join(f"'{n}' {s[0]}" for n, s in zip(self.names, shapes, strict=True))
                raise FileError(path, f"its data sets must hold as many rows; they hold {listed}")
            self._length = int(shapes[0][0])
            self._columns = {
                name: Column(dataset.dtype.newbyteorder("="), dataset.shape[1:])
                for name, dataset in zip(self.names, datasets, strict=True)
            }
        self._held: tuple[int, Any] | None = None

    @property
    def columns(self) -> Mapping[str, Column]:
        return self._columns

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Indices) -> Batch:
        rows = rows_of(indices, len(self))
        file = self._open()
        return {name: self._read(file, name, rows) for name in self.names}

    def close(self) -> None:
        if self._held is not None:
            self._held[1].close()
        self._held = None

    def _open(self) -> Any:
        """Return the file, opened once a process: a forked child must not share its position."""
        if self._held is None or self._held[0] != os.getpid():
            self._held = os.getpid(), open_hdf5(self.path)
        return self._held[1]

    def _read(self, file: Any, name: str, rows: Rows) -> Array:
        column, dataset = self._columns[name], open_dataset(file, self.path, name)
        check_batch(self.path, name, dataset, len(rows))
        out = np.empty((len(rows), *column.shape), column.dtype)
        read_rows(dataset, rows, out, self.path)
        return out


def _numeric(file: Any, path: str) -> list[str]:
    """Return the data sets of numbers at the top of a file."""
    try:
        members = {name: linked(file, name, path) for name in file}
        kinds = {
            name: getattr(getattr(m, "dtype", None), "kind", "O") for name, m in members.items()
        }
    except FileError:
        raise
    except Exception as error:  # h5py raises nearly every builtin exception for a damaged file
        raise FileError(path, f"is a damaged HDF5 file: {clean(error)}") from error
    return [name for name, kind in kinds.items() if kind in "fiu"]
