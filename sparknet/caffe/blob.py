"""Blob: pycaffe's view of the engine's memory."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType, ref

import numpy as np

from sparknet.graph.plots import Raster
from sparknet.graph.tiles import MOST, Channels, tiles
from sparknet.layers import Shape
from sparknet.layers.layer import count
from sparknet.layers.user_layer import ShapeBlob, Sizes, blob_shape
from sparknet.native import NDArray
from sparknet.native.engine import NetEngine
from sparknet.native.staged_rows import DeviceRows, StagedRows

if TYPE_CHECKING:
    from sparknet.caffe.runtime import Runtime

Array = np.ndarray[Any, np.dtype[np.float32]]


class Blob(Sizes):
    """Values and gradient of one blob, as float32 arrays that view the engine's memory."""

    @property
    @abstractmethod
    def data(self) -> Array: ...

    @property
    @abstractmethod
    def diff(self) -> Array: ...

    @abstractmethod
    def reshape(self, *shape: int) -> None: ...

    def plot(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        diff: bool = False,
        most: int = MOST,
        channels: Channels = "bgr",
    ) -> Raster:
        """Draw its values or gradient (ours); write the picture to ``out``, a file named .png."""
        values = self.diff if diff else self.data
        return tiles(values, most=most, channels=channels).saved(out)

    def __repr__(self) -> str:
        return f"<Blob {tuple(self.shape)} float32>"


Blob.register(ShapeBlob)  # what Python layers see in setup, and what add_blob makes


class EngineBlob(Blob):
    """A blob between layers; views stay valid from pass to pass."""

    def __init__(self, runtime: Runtime, number: int) -> None:
        self._runtime = runtime
        self._number = number
        self._generation = -1
        self._views: dict[bool, Array] = {}

    def _view(self, diff: bool) -> Array:
        if self._generation != self._runtime.generation:
            self._views.clear()
            self._generation = self._runtime.generation
        view = self._views.get(diff)
        if view is None or not self._runtime.engine.views_stay:
            view = np.asarray(self._runtime.engine.blob_array(self._number, diff))
            self._views[diff] = view
        return view

    @property
    def data(self) -> Array:
        return self._view(False)

    @property
    def diff(self) -> Array:
        return self._view(True)

    @property
    def shape(self) -> Shape:
        return self._runtime.shapes[self._number]

    @property
    def device_rows(self) -> DeviceRows | None:
        """What transforms rows of bytes where the net computes, if that is not the host."""
        return self._runtime.engine.device_rows

    def put(self, rows: StagedRows) -> None:
        """Rows of bytes become the values, on the device."""
        assert self.device_rows is not None
        self.device_rows.put(self._number, rows)

    def adopt(self, values: Array) -> bool:
        """Uses `values` as storage; where views exist, copies and returns False."""
        return self._runtime.engine.adopt(self._number, NDArray.view(values))

    def reshape(self, *shape: int) -> None:
        self._runtime.touch(self._number, blob_shape(shape))


class ParamBlob(Blob):
    """A part of the net's flat buffers; after a reshape it has memory ``apart`` from the net."""

    def __init__(
        self, data: NDArray, diff: NDArray, apart: set[ParamBlob], engine: NetEngine
    ) -> None:
        self._engine = engine
        self._built_array = diff
        self.array = self._built = data
        self._diff = self._built_diff = np.asarray(diff)
        self._view: ReferenceType[Array] | None = None
        self._apart = apart

    def share(self, other: ParamBlob) -> None:
        """Use another parameter's values from now on; the gradient stays separate."""
        self.array = self._built = other.array
        self._view = None

    def shares_with(self, flat: NDArray) -> bool:
        begin = flat.address
        return begin <= self.array.address < begin + max(flat.nbytes, 1)

    @property
    def data(self) -> Array:
        """A new view at each call: while one lives, the engine expects changed values."""
        self._at_host(self.array)
        view = self._view() if self._view is not None else None
        if view is None:
            view = self.array.numpy()
            self._view = ref(view)
        return view

    @property
    def diff(self) -> Array:
        self._at_host(self._built_array)
        return self._diff

    def _at_host(self, array: NDArray) -> None:
        if self not in self._apart:
            self._engine.at_host(array)

    @property
    def shape(self) -> Shape:
        return self.array.shape

    def __repr__(self) -> str:
        self._at_host(self.array)
        values = self.array.numpy()
        extent = f", {values.min():.4g} to {values.max():.4g}" if values.size else ""
        return f"<Blob {tuple(self.shape)} float32{extent}>"

    def reshape(self, *shape: int) -> None:
        """Change the shape; values stay if their number does, else they become zeros."""
        sizes = blob_shape(shape)
        if sizes == self.shape:
            return
        if count(sizes) == count(self._built.shape):
            self.array = self._built.reshape(sizes)
            self._diff = self._built_diff.reshape(sizes)
            self._apart.discard(self)
        elif count(sizes) == self.count:
            self.array, self._diff = self.array.reshape(sizes), self._diff.reshape(sizes)
        else:
            self.array, self._diff = NDArray.zeros(sizes), np.zeros(sizes, np.float32)
            self._apart.add(self)
        self._view = None
