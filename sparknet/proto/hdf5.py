"""Models and solver states in Caffe's HDF5 layout (net.cpp, ToHDF5; sgd_solver.cpp)."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, SparkNetError, WeightsError, clean, extra
from sparknet.proto import caffe_pb2
from sparknet.proto.blob_file import Array, aligned, checked_count
from sparknet.proto.byte_source import ByteSource, FileSource, StrPath, open_source
from sparknet.proto.model import LayerArrays, Model
from sparknet.proto.wire import Piece, load

if TYPE_CHECKING:
    import h5py  # type: ignore[import-untyped, import-not-found, unused-ignore]


def linked(parent: Any, name: str, path: object, what: str = "") -> Any:
    """Return a member by its own name: libhdf5 would follow a soft or external link anywhere."""
    h5 = h5py_module("reading an HDF5 file")
    what = what or f"'{clean(name)}'"
    link = parent.get(name, getlink=True)
    if link is None:
        raise FileError(path, f"{what} is missing")
    if not isinstance(link, h5.HardLink):
        raise FileError(path, f"{what} is a link to somewhere else")
    return parent[name]


def own_dataset(parent: Any, name: str, path: object, what: str) -> Any:
    """Return a dataset of this file; virtual and external ones name other files."""
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
    """Hold h5py's lock while forking, or a child may wait for it for ever (h5py#2584)."""
    lock = getattr(importlib.import_module("h5py._objects"), "phil", None)
    if lock is not None:
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )


SIGNATURE = b"\x89HDF\r\n\x1a\n"
_LONGEST_NAME = 1 << 16
_UNPACKING = 64
"""A compressed dataset may be this many times its stored size; weights hardly compress at all."""


def has_suffix(path: StrPath) -> bool:
    return os.fspath(path).endswith(".h5")


def is_hdf5(source: ByteSource) -> bool:
    return source.peek(0, len(SIGNATURE)) == SIGNATURE or has_suffix(source.name)


def read_hdf5_model(path: StrPath, diffs: bool = False) -> Model:
    """Reads an HDF5 caffemodel: its net holds nothing but layer names and blob shapes."""
    with _reading(path) as reader:
        groups = reader.groups("data")
        gradients = dict(reader.groups("diff")) if diffs and "diff" in reader.file else {}
        net = caffe_pb2.NetParameter()
        arrays: list[LayerArrays] = []
        diff_arrays: list[LayerArrays] = []
        for name, group in groups:
            layer = net.layer.add(name=name)
            arrays.append(reader.numbered(group, f"layer {name!r}"))
            for array in arrays[-1]:
                layer.blobs.add().shape.dim.extend(() if array is None else array.shape)
            if name in gradients:
                diff_arrays.append(reader.numbered(gradients[name], f"layer {name!r} diff"))
            elif diffs:
                diff_arrays.append(_zeros(arrays[-1]))
        return Model(net, arrays, diff_arrays if diffs else None, partial=True)


def write_hdf5_model(path: StrPath, model: Model, write_diff: bool = False) -> None:
    """Writes an HDF5 caffemodel; the data of a shared parameter is written with its owner only."""
    names: set[str] = set()
    for layer in model.net.layer:
        if "/" in layer.name or layer.name in ("", "."):
            raise WeightsError(layer.name, "HDF5 cannot hold a layer of this name: rename it")
        if layer.name in names:
            raise WeightsError(layer.name, "HDF5 cannot hold two layers of one name")
        names.add(layer.name)
    with _writing(path) as file:
        data = file.create_group("data")
        diff = file.create_group("diff") if write_diff and model.diffs is not None else None
        owned: set[str] = set()
        for index, layer in enumerate(model.net.layer):
            arrays = _without_shared(layer, model.arrays[index], owned)
            _write_numbered(data.create_group(layer.name), arrays)
            if diff is not None and model.diffs is not None:
                _write_numbered(diff.create_group(layer.name), model.diffs[index])


def read_hdf5_state(path: StrPath) -> tuple[int, str, int, list[Array]]:
    """Iteration, model file, current step and history of an HDF5 solverstate."""
    with _reading(path) as reader:
        iteration = reader.integer("iter")
        step = reader.integer("current_step")
        learned = reader.string("learned_net") if "learned_net" in reader.file else ""
        history = reader.numbered(reader.group(reader.file, "history"), "history")
        for index, array in enumerate(history):
            if array is None:
                raise FileError(path, f"history blob {index} is missing")
        return iteration, learned, step, [array for array in history if array is not None]


def write_hdf5_state(
    path: StrPath, iteration: int, learned_net: str, step: int, history: list[Array]
) -> None:
    with _writing(path) as file:
        file.create_dataset("iter", data=np.array([iteration], np.int32))
        if learned_net:
            _write_string(file, "learned_net", learned_net)
        file.create_dataset("current_step", data=np.array([step], np.int32))
        _write_numbered(file.create_group("history"), list(history))


class _HDF5Reader:
    """A file of unknown origin: every dataset is examined before memory is taken for it."""

    def __init__(self, h5: ModuleType, file: h5py.File, source: FileSource) -> None:
        self.h5, self.file, self.source = h5, file, source
        self.path, self.size = source.name, source.size
        self.read = 0

    def groups(self, name: str) -> list[tuple[str, h5py.Group]]:
        parent = self.group(self.file, name)
        return [(str(child), self.group(parent, child)) for child in parent]

    def group(self, parent: h5py.Group, name: str) -> h5py.Group:
        group = linked(parent, name, self.path)
        if not isinstance(group, self.h5.Group):
            raise FileError(self.path, f"{name!r} is not a group")
        return group

    def numbered(self, group: h5py.Group, what: str) -> LayerArrays:
        """Datasets '0', '1' … in order, None for a missing number below the last."""
        arrays: dict[int, Array] = {}
        for name in group:
            if not (name.isascii() and name.isdigit() and len(name) < 5 and str(int(name)) == name):
                raise FileError(self.path, f"{what} has a member {name!r}, numbers are expected")
            arrays[int(name)] = self.array(group, name, f"{what} blob {name}")
        return [arrays.get(index) for index in range(max(arrays, default=-1) + 1)]

    def array(self, group: h5py.Group, name: str, what: str) -> Array:
        dataset = own_dataset(group, name, self.path, what)
        if dataset.dtype.kind not in "fiu" or dataset.dtype.itemsize > 8:
            raise FileError(self.path, f"{what} holds {dataset.dtype}, numbers are expected")
        shape = self._checked_shape(dataset, what)
        flat = aligned(checked_count(self.path, what, shape))
        offset = self._place(dataset)
        if flat.size and offset is not None:
            load(self.source, [Piece(offset, flat.size, 0, 4)], flat)
        elif flat.size:
            dataset.read_direct(flat.reshape(shape))
        return flat.reshape(shape)

    def _place(self, dataset: h5py.Dataset) -> int | None:
        """Return where plain floats lie in one run, to be read past libhdf5."""
        layout = dataset.id.get_create_plist().get_layout()
        if layout != self.h5.h5d.CONTIGUOUS or dataset.dtype != np.dtype("<f4"):
            return None
        if self.file.userblock_size or dataset.id.get_offset() is None:
            return None
        return int(dataset.id.get_offset())

    def integer(self, name: str) -> int:
        dataset = own_dataset(self.file, name, self.path, f"'{name}'")
        if dataset.dtype.kind not in "iu" or dataset.dtype.itemsize > 8 or dataset.size != 1:
            raise FileError(self.path, f"'{name}' is not one integer")
        self._checked_shape(dataset, f"'{name}'")
        value = int(np.asarray(dataset[()]).reshape(-1)[0])
        if not 0 <= value < 1 << 31:
            raise FileError(self.path, f"'{name}' is {value}, out of range")
        return value

    def string(self, name: str) -> str:
        dataset = own_dataset(self.file, name, self.path, f"'{name}'")
        if dataset.dtype.kind != "S" or dataset.size != 1:
            raise FileError(self.path, f"'{name}' is not a string of fixed length")
        if dataset.dtype.itemsize > _LONGEST_NAME:
            raise FileError(self.path, f"'{name}' is {dataset.dtype.itemsize} bytes long")
        self._checked_shape(dataset, f"'{name}'")
        raw = bytes(np.asarray(dataset[()]).reshape(-1)[0])
        try:
            return raw.split(b"\0", 1)[0].decode()
        except UnicodeDecodeError as error:
            raise FileError(self.path, f"'{name}' {raw[:40]!r} is not UTF-8") from error

    def _checked_shape(self, dataset: h5py.Dataset, what: str) -> tuple[int, ...]:
        """Return the shape, once the file is known to be large enough for it."""
        shape = tuple(int(size) for size in dataset.shape)
        needed = checked_count(self.path, what, shape) * dataset.dtype.itemsize
        stored = min(dataset.id.get_storage_size(), self.size)
        plain = dataset.chunks is None
        self.read += needed if plain else needed // _UNPACKING
        if needed > stored * (1 if plain else _UNPACKING) or self.read > self.size:
            raise FileError(
                self.path, f"{what} claims {needed} bytes of values, the file stores {stored}"
            )
        if not plain and int(np.prod(dataset.chunks)) * dataset.dtype.itemsize > max(
            needed * 4, 1 << 20
        ):
            raise FileError(self.path, f"{what} has chunks {dataset.chunks} larger than itself")
        return shape


@contextmanager
def _reading(path: StrPath) -> Iterator[_HDF5Reader]:
    h5 = h5py_module(f"reading {os.fspath(path)}")
    try:
        # As a Python file: what libhdf5 opens by name it may remember after damage, and confuse
        # with the next file of that name.
        with open_source(path) as source, source.stream() as raw, h5.File(raw, "r") as file:
            yield _HDF5Reader(h5, file, source)
    except SparkNetError:
        raise
    except MemoryError as error:
        raise FileError(path, "needs more memory than there is") from error
    except Exception as error:  # h5py raises nearly every builtin exception for a damaged file
        raise FileError(
            path, f"is damaged or not an HDF5 file: {' '.join(str(error).split())}"
        ) from error


@contextmanager
def _writing(path: StrPath) -> Iterator[h5py.File]:
    h5 = h5py_module(f"writing {os.fspath(path)}")
    with atomic_file(path) as draft, h5.File(draft, "w") as file:
        yield file


def _without_shared(
    layer: caffe_pb2.LayerParameter, arrays: LayerArrays, owned: set[str]
) -> LayerArrays:
    out: LayerArrays = []
    for index, array in enumerate(arrays):
        name = layer.param[index].name if index < len(layer.param) else ""
        out.append(None if name in owned else array)
        if name:
            owned.add(name)
    return out


def _zeros(arrays: LayerArrays) -> LayerArrays:
    return [None if array is None else np.zeros(array.shape, np.float32) for array in arrays]


def _write_numbered(group: h5py.Group, arrays: LayerArrays) -> None:
    for index, array in enumerate(arrays):
        if array is not None:
            group.create_dataset(str(index), data=np.asarray(array, "<f4"))


def _write_string(file: h5py.File, name: str, text: str) -> None:
    """Write a string that ends in a zero byte, as Caffe's reader relies on."""
    h5: Any = h5py_module("writing a string")
    raw = text.encode()
    kind = h5.h5t.C_S1.copy()
    kind.set_size(len(raw) + 1)
    kind.set_strpad(h5.h5t.STR_NULLTERM)
    space = h5.h5s.create(h5.h5s.SCALAR)
    dataset = h5.h5d.create(file.id, name.encode(), kind, space)
    dataset.write(space, space, np.array(raw, f"S{len(raw) + 1}"), kind)
