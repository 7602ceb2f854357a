"""HDF5 files as data sources: lists of files, and the shapes of their data sets; and as results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparknet.errors import FileError, MissingExtra

LARGEST_LIST = 1 << 26


def read_list(path: str) -> list[str]:
    """The file names in a list, one to a word (Caffe: hdf5_data_layer.cpp)."""
    file = Path(path)
    if not file.is_file():
        raise FileError(path, "does not exist" if not file.exists() else "is no file")
    if file.stat().st_size > LARGEST_LIST:
        raise FileError(path, "is too long for a list of files")
    return file.read_text(encoding="utf-8", errors="surrogateescape").split()


def dataset_shapes(path: str, names: Sequence[str]) -> list[tuple[int, ...]]:
    """The shapes of some data sets; only the headers are read."""
    with open_hdf5(path) as file:
        return [_shape(file, path, name) for name in names]


def open_hdf5(path: str) -> Any:
    """An HDF5 file for reading."""
    h5py = _h5py("reading an HDF5 file")
    if not Path(path).is_file():
        raise FileError(path, "does not exist" if not Path(path).exists() else "is no file")
    try:
        return h5py.File(path, "r")
    except (OSError, RuntimeError, ValueError) as error:
        raise FileError(path, f"is no HDF5 file that can be read: {error}") from error


def _shape(file: Any, path: str, name: str) -> tuple[int, ...]:
    try:
        dataset = file[name]
        shape, kind = dataset.shape, dataset.dtype.kind
    except (KeyError, AttributeError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise FileError(path, f"has no data set '{name}'") from error
    if kind not in "fiu":
        raise FileError(path, f"data set '{name}' holds no numbers")
    if not shape:
        raise FileError(path, f"data set '{name}' needs at least 1 axis")
    return tuple(int(size) for size in shape)


def append_rows(path: str, rows: Mapping[str, Any], anew: bool) -> None:
    """Add rows to the data sets of a file; ``anew`` begins the file."""
    h5py = _h5py("writing an HDF5 file")
    try:
        with h5py.File(path, "w" if anew else "a") as file:
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


def _h5py(purpose: str) -> Any:
    try:
        import h5py  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise MissingExtra("h5py", "hdf5", purpose) from error
    return h5py
