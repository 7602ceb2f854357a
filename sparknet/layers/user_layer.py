"""What a user's Python layer works with: ``caffe.Layer``, its blobs, ``import caffe``.

A blob here is only a shape; its ``data`` and ``diff`` arrays are made on first use.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from types import ModuleType
from typing import Any

import numpy as np

from sparknet.layers.layer import TEST, TRAIN, Shape
from sparknet.layers.sizes import Sizes, blob_shape
from sparknet.proto import caffe_pb2

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


class UserLayer:
    """The base class of Python layers: pycaffe's ``Layer``.

    A layer defines ``forward(bottom, top)``, and ``backward(top, propagate_down, bottom)`` if
    gradients come to it.
    """

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
