"""Groups and datasets that lie in an HDF5 file itself: no link leads to another file or back."""

from __future__ import annotations

import importlib
import os
from functools import cache
from types import ModuleType
from typing import Any

from sparknet.errors import FileError, extra, shown


def linked(parent: Any, name: str, path: object, what: str = "") -> Any:
    """A member by its own name: libhdf5 would follow a soft or external link anywhere."""
    h5 = h5py_module("reading an HDF5 file")
    what = what or f"'{shown(name)}'"
    link = parent.get(name, getlink=True)
    if link is None:
        raise FileError(path, f"{what} is missing")
    if not isinstance(link, h5.HardLink):
        raise FileError(path, f"{what} is a link to somewhere else")
    return parent[name]


def own_dataset(parent: Any, name: str, path: object, what: str) -> Any:
    """A dataset whose values lie in this file.

    Virtual datasets and external storage name other files, which may be any of this machine,
    and a virtual dataset over itself ends the process.
    """
    h5 = h5py_module("reading an HDF5 file")
    dataset = linked(parent, name, path, what)
    if not isinstance(dataset, h5.Dataset):
        raise FileError(path, f"{what} is not a dataset")
    if dataset.is_virtual or dataset.external:
        raise FileError(path, f"{what} has its values in another file")
    if dataset.shape is None:
        raise FileError(path, f"{what} has no values")
    return dataset


def h5py_module(purpose: str) -> ModuleType:
    with extra("h5py", "hdf5", purpose):
        module = importlib.import_module("h5py")
    _fork_between_calls()
    return module


@cache
def _fork_between_calls() -> None:
    """A child forked while another thread reads would wait for h5py's lock for ever (h5py#2584)."""
    lock = getattr(importlib.import_module("h5py._objects"), "phil", None)
    if lock is not None:
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
