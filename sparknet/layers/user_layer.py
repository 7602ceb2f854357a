"""The base class and the blobs of a user's Python layers, as ``caffe.Layer`` has them."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from operator import index
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from sparknet.errors import ArgumentError, ArrayError, clean
from sparknet.layers.layer import MAX_AXES, MAX_COUNT, TEST, TRAIN, Shape, count, shape_text
from sparknet.proto import caffe_pb2


class Sizes(ABC):
    """The number of values of a shape, and its first four axes under their old names."""

    @property
    @abstractmethod
    def shape(self) -> Shape: ...

    @property
    def count(self) -> int:
        return count(self.shape)

    @property
    def num(self) -> int:
        return self._legacy(0)

    @property
    def channels(self) -> int:
        return self._legacy(1)

    @property
    def height(self) -> int:
        return self._legacy(2)

    @property
    def width(self) -> int:
        return self._legacy(3)

    def _legacy(self, axis: int) -> int:
        """Caffe: blob.hpp, LegacyShape: axes beyond the last have size 1; at most four axes."""
        shape = self.shape
        if len(shape) > 4:
            raise ArrayError(
                f"num, channels, height and width are for at most 4 axes; "
                f"the blob is {shape_text(shape)}"
            )
        return shape[axis] if axis < len(shape) else 1


def blob_shape(sizes: Sequence[Any]) -> Shape:
    """Return a shape that a blob can have, of whole numbers.  Caffe: blob.cpp, Reshape."""
    shape = tuple(map(_size, sizes))
    fits = len(shape) <= MAX_AXES and min(shape, default=0) >= 0 and count(shape) <= MAX_COUNT
    if not fits:
        raise ArrayError(f"no blob can have the shape {shape_text(shape)}")
    return shape


def _size(size: Any) -> int:
    try:
        return int(index(size))
    except TypeError:
        size_text = f"{clean(repr(size))} ({type(size).__name__})"
        raise ArgumentError(f"a size of a blob must be a whole number; it is {size_text}") from None


Array = np.ndarray[Any, np.dtype[np.float32]]

_caffe: ModuleType | None = None
_import_lock = threading.RLock()


class Phase(IntEnum):
    """``self.phase``: a number, as in Caffe, whose text is its name, as in the forks of 2015."""

    TRAIN = TRAIN
    TEST = TEST

    def __str__(self) -> str:
        return self.name


class ShapeBlob(Sizes):
    """A blob without memory, as pycaffe shows it."""

    def __init__(self, shape: Sequence[int] = ()) -> None:
        self._shape: Shape = ()
        self._arrays: dict[str, Array] = {}
        self.reshape(*shape)

    def reshape(self, *dims: int) -> None:
        """Values are lost; memory is allocated on their first use."""
        shape = blob_shape(dims)
        if shape != self._shape:
            self._shape, self._arrays = shape, {}

    @property
    def shape(self) -> Shape:
        return self._shape

    @property
    def data(self) -> Array:
        return self._array("data")

    @property
    def diff(self) -> Array:
        return self._array("diff")

    def _array(self, name: str) -> Array:
        if name not in self._arrays:
            self._arrays[name] = np.zeros(self._shape, np.float32)
        return self._arrays[name]


class RawBlobVec(list[Any]):
    """The ``bottom`` or ``top`` of a Python layer."""


class BlobVec(list[Any]):
    """The parameters of a layer."""

    def add_blob(self, *dims: int) -> None:
        self.append(ShapeBlob(dims))


class LayerVec(list[Any]):
    """``net.layers``."""


class NetVec(list[Any]):
    """``solver.test_nets``."""


class StringVec(list[str]):
    """Names of layers or blobs."""


class IntVec(list[int]):
    """Numbers of blobs."""


class DtypeVec(list[float]):
    """Loss weights."""


class BoolVec(list[bool]):
    """The ``propagate_down`` of a Python layer."""


U = TypeVar("U", bound="UserLayer")


class UserLayer:
    """The base class of Python layers: pycaffe's ``Layer``.

    A layer defines ``forward(bottom, top)``, and ``backward(top, propagate_down, bottom)`` if
    gradients come to it."""

    def __init__(self, parameter: caffe_pb2.LayerParameter | None = None) -> None:
        self.blobs = BlobVec()
        self.param_str = parameter.python_param.param_str if parameter is not None else ""
        self.param_str_ = self.param_str
        self.phase = Phase.TRAIN
        self.type = "Python"

    def setup(self, bottom: Any, top: Any) -> None:
        """Called once, before the first ``reshape``."""

    def reshape(self, bottom: Any, top: Any) -> None:
        """Called before every forward pass: give the tops their shapes."""


SUPPLIED: dict[str, ModuleType] = {}
"""Modules of Python layers that nets name, and what stands in where they cannot be imported."""


def supplies(name: str) -> Callable[[type[U]], type[U]]:
    """Put a class into the module that stands in for a net's own of this name."""

    def register(kind: type[U]) -> type[U]:
        setattr(SUPPLIED.setdefault(name, ModuleType(name)), kind.__name__, kind)
        return kind

    return register


def use_caffe(module: ModuleType | None) -> None:
    """Set the module that a plain ``import caffe`` in a user's layer imports."""
    global _caffe
    _caffe = module


@contextmanager
def caffe_importable() -> Iterator[None]:
    """Inside, ``import caffe`` gives the module that was set, or a minimal one."""
    with _import_lock:
        if "caffe" in sys.modules:
            yield
            return
        sys.modules["caffe"] = _caffe or _minimal()
        try:
            yield
        finally:
            sys.modules.pop("caffe", None)


def _minimal() -> ModuleType:
    module = ModuleType("caffe")
    vars(module).update(Layer=UserLayer, TRAIN=TRAIN, TEST=TEST)
    return module
