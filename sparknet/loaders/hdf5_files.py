"""HDF5 files as records: their data sets are the columns."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.errors import FileError, shown
from sparknet.loaders.hdf5 import check_batch, open_dataset, open_hdf5
from sparknet.loaders.records import Array, Batch, Column, Indices, Opened, Rows, rows_of
from sparknet.proto.byte_source import StrPath
from sparknet.proto.hdf5_members import linked


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
        """The file, opened once a process: a forked child must not share its position."""
        if self._held is None or self._held[0] != os.getpid():
            self._held = os.getpid(), open_hdf5(self.path)
        return self._held[1]

    def _read(self, file: Any, name: str, rows: Rows) -> Array:
        column, dataset = self._columns[name], open_dataset(file, self.path, name)
        check_batch(self.path, name, dataset, len(rows))
        out = np.empty((len(rows), *column.shape), column.dtype)
        # HDF5 wants each row once, in ascending order.
        wanted, places = np.unique(rows, return_inverse=True)
        if not len(wanted):
            return out
        whole = len(wanted) == wanted[-1] - wanted[0] + 1
        try:
            found = dataset[wanted[0] : wanted[-1] + 1] if whole else dataset[wanted]
        except (OSError, RuntimeError, ValueError) as error:
            raise FileError(self.path, f"cannot be read: {shown(error)}") from error
        out[...] = found[places.reshape(-1)]
        return out


def _numeric(file: Any, path: str) -> list[str]:
    """The data sets of numbers at the top of a file."""
    try:
        members = {name: linked(file, name, path) for name in file}
        kinds = {
            name: getattr(getattr(m, "dtype", None), "kind", "O") for name, m in members.items()
        }
    except FileError:
        raise
    except Exception as error:  # h5py raises nearly every builtin exception for a damaged file
        raise FileError(path, f"is a damaged HDF5 file: {shown(error)}") from error
    return [name for name, kind in kinds.items() if kind in "fiu"]
