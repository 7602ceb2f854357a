"""HDF5 files as data sources: lists of files, and the shapes of their data sets; and as results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from sparknet.errors import FileError, shown
from sparknet.loaders.mapped import MOST_GROWTH
from sparknet.proto.byte_source import check_is_file
from sparknet.proto.hdf5_members import h5py_module, linked, own_dataset

LARGEST_LIST = 1 << 26
LARGEST_RECORD = 1 << 28
"""Bytes.  A small file can announce rows of any size: what was never written reads as zeros."""
LARGEST_BATCH = 1 << 30
"""Bytes that one batch may take whatever the file stores."""
MOST_UNPACKED = 64
"""A batch larger than that may be this many times what the file stores of its data set."""


def read_list(path: str) -> list[str]:
    """The file names in a list, one to a word (Caffe: hdf5_data_layer.cpp)."""
    file = Path(path)
    check_is_file(path)
    if file.stat().st_size > LARGEST_LIST:
        raise FileError(path, "is too long for a list of files")
    return file.read_text(encoding="utf-8", errors="surrogateescape").split()


def dataset_shapes(path: str, names: Sequence[str], batch: int) -> list[tuple[int, ...]]:
    """The shapes of data sets that are to be read in batches; only the headers are read."""
    with open_hdf5(path) as file:
        datasets = [open_dataset(file, path, name) for name in names]
        for name, dataset in zip(names, datasets, strict=True):
            check_batch(path, name, dataset, batch)
        return [dataset.shape for dataset in datasets]


def open_hdf5(path: str) -> Any:
    """An HDF5 file for reading."""
    h5py = h5py_module("reading an HDF5 file")
    check_is_file(path)
    try:
        return h5py.File(path, "r")
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(path, f"is no HDF5 file that can be read: {shown(error)}") from error


def open_dataset(file: Any, path: str, name: str) -> Any:
    """A data set of numbers in the file itself, examined before memory is taken for its rows."""
    what = f"data set '{shown(name)}'"
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
        raise FileError(path, f"has no {what} that can be read: {shown(error)}") from error


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
            f"{count} rows of data set '{shown(name)}' are {size} bytes, of which the file stores "
            f"{stored}: take fewer at once",
        )


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
                    growing = (None, *values.shape[1:])
                    file.create_dataset(name, data=values, maxshape=growing, chunks=chunk)
    except FileError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(path, f"cannot be written: {error}") from error
