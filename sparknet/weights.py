"""WeightCollection: a net's weights by layer name, over one flat buffer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from sparknet.errors import ArrayError, WeightsError
from sparknet.layers import Shape
from sparknet.layers.layer import count, shape_text
from sparknet.native import NDArray
from sparknet.proto import Model, caffe_pb2, read_model, write_model

StrPath = str | os.PathLike[str]
Span = tuple[int, int]

STATISTICS = frozenset({"BatchNorm"})
"""Layer types whose blobs are no weights: running sums, which no gradient moves."""


@dataclass(frozen=True)
class LayerBlobs:
    """A layer's parameter blobs: their shapes, and where each begins in the flat buffer.

    Parameters that layers share begin at the same place.
    """

    name: str
    shapes: tuple[Shape, ...]
    begins: tuple[int, ...]
    type: str = field(default="", compare=False)
    """Empty where a file does not say (HDF5)."""

    @property
    def spans(self) -> list[Span]:
        """First and last-but-one place of each blob in the flat buffer."""
        sizes = map(count, self.shapes)
        return [(begin, begin + size) for begin, size in zip(self.begins, sizes, strict=True)]


@dataclass(frozen=True)
class Layout:
    """Which layers a flat buffer of weights holds, in order, and where."""

    layers: tuple[LayerBlobs, ...]

    @cached_property
    def size(self) -> int:
        """The length of the flat buffer."""
        return max((end for layer in self.layers for _, end in layer.spans), default=0)

    @cached_property
    def statistics(self) -> tuple[Span, ...]:
        """The parts of the flat buffer that are BatchNorm's running sums, in order."""
        held = (layer for layer in self.layers if layer.type in STATISTICS)
        merged: list[Span] = []
        for begin, end in sorted({span for layer in held for span in layer.spans}):
            if merged and merged[-1][1] >= begin:
                begin = merged.pop()[0]
            merged.append((begin, end))
        return tuple(merged)

    @cached_property
    def by_name(self) -> dict[str, LayerBlobs]:
        return {layer.name: layer for layer in self.layers}

    def check(self, other: Layout, second: str = "the second") -> None:
        """Refuse weights of other layers, by the first that differs and how.

        The order may differ: an HDF5 file holds layers by the alphabet.
        """
        if self.layers == other.layers:
            return
        for layer in self.layers:
            _check_alike(layer, other.by_name.get(layer.name), second)
        for layer in other.layers:
            if layer.name not in self.by_name:
                raise WeightsError(layer.name, f"only {second} has this layer")

    @property
    def shared(self) -> str:
        """The first layer that shares a parameter with an earlier one."""
        places = set[Span]()
        for layer in self.layers:
            if places.intersection(layer.spans):
                return layer.name
            places.update(layer.spans)
        raise ArrayError("no layers share parameters")

    def locate(self, place: int) -> tuple[str, int]:
        """The layer and the blob that hold a place of the flat buffer."""
        for layer in self.layers:
            for index, (begin, end) in enumerate(layer.spans):
                if begin <= place < end:
                    return layer.name, index
        raise ArrayError(f"place {place} lies outside the {self.size} weights")


class Layouts:
    """Collects a layout, layer by layer; blobs of the same key lie in the same place."""

    def __init__(self) -> None:
        self._layers: list[LayerBlobs] = []
        self._places: dict[object, Span] = {}
        self._size = 0

    def add(self, name: str, kind: str, shapes: Sequence[Shape], keys: Sequence[object]) -> None:
        """A layer; a key that is None is like no other."""
        begins = tuple(map(self._begin, map(count, shapes), keys))
        self._layers.append(LayerBlobs(name, tuple(shapes), begins, kind))

    def done(self) -> Layout:
        return Layout(tuple(self._layers))

    def _begin(self, size: int, key: object) -> int:
        known = self._places.get(key)
        if key is not None and known is not None and known[1] == size:
            return known[0]
        begin, self._size = self._size, self._size + size
        self._places[key] = (begin, size)
        return begin


class WeightCollection(Mapping[str, list[NDArray]]):
    """Layer name → the layer's parameters, as views of one flat float32 buffer, `flat`.

    A parameter that several layers share lies there once.  Arithmetic wants collections of
    the same layout and makes new ones; ``+=``, ``-=``, ``*=`` and ``/=`` compute in place.
    Collections compare by identity: see `allclose`.
    """

    __hash__ = object.__hash__

    def __init__(self, layout: Layout, flat: NDArray | None = None) -> None:
        self.layout = layout
        self.flat = NDArray.zeros((layout.size,)) if flat is None else flat
        if self.flat.shape != (layout.size,) or self.flat.dtype != np.float32:
            raise ArrayError(
                f"weights of {layout.size} numbers cannot lie in a buffer of shape "
                f"{shape_text(self.flat.shape)} and type {self.flat.dtype}"
            )
        self._views = {
            layer.name: [
                self.flat[begin:end].reshape(shape)
                for (begin, end), shape in zip(layer.spans, layer.shapes, strict=True)
            ]
            for layer in layout.layers
        }

    # -- where they come from and go to --------------------------------------------------

    @classmethod
    def of(cls, net: Any, copy: bool = True) -> WeightCollection:
        """The weights of a pycaffe net.

        Without `copy` they are the net's own memory, which only the embedded engine can lend.
        """
        layout = layout_of(net)
        flat = _flat_of(net, layout)
        if flat is not None:
            return cls(layout, flat.copy() if copy else flat)
        if not copy:
            raise ArrayError(
                "this net's weights do not lie in one buffer: only copies are to be had"
            )
        made = cls(layout, NDArray.empty((layout.size,)))
        for name, views in made.items():
            for view, blob in zip(views, net.params[name], strict=True):
                view.numpy()[...] = blob.data
        return made

    def to_net(self, net: Any) -> None:
        """Write them into a pycaffe net that has exactly these layers."""
        layout = layout_of(net)
        self.layout.check(layout, "the net")
        flat = _flat_of(net, layout)
        if flat is not None and layout == self.layout:
            flat.copy_from(self.flat)
            return
        for name, views in self.items():
            for view, blob in zip(views, net.params[name], strict=True):
                blob.data[...] = view.numpy()

    @classmethod
    def load(cls, path: StrPath) -> WeightCollection:
        """The weights of a caffemodel of any age, or of an HDF5 file."""
        model = read_model(path)
        layouts, parts = Layouts(), {}
        for layer, arrays in zip(model.net.layer, model.arrays, strict=True):
            if not arrays:
                continue
            held = [array for array in arrays if array is not None]
            if len(held) < len(arrays):
                raise WeightsError(
                    layer.name,
                    f"{os.fspath(path)} holds some of its parameters under another layer's name: "
                    "load it into a net",
                )
            keys = [spec.name or None for spec in layer.param]
            keys += [None] * (len(held) - len(keys))
            layouts.add(layer.name, layer.type, [array.shape for array in held], keys[: len(held)])
            parts[layer.name] = held
        made = cls(layouts.done())
        for name, views in made.items():
            for view, array in zip(views, parts[name], strict=True):
                view.copy_from(array)
        return made

    def save(self, path: StrPath) -> None:
        """Write a caffemodel; HDF5 if the name ends in .h5."""
        net, owners = caffe_pb2.NetParameter(), dict[Span, str]()
        for layer in self.layout.layers:
            written = net.layer.add(name=layer.name, type=layer.type)
            for index, (span, shape) in enumerate(zip(layer.spans, layer.shapes, strict=True)):
                written.blobs.add().shape.dim.extend(shape)
                # A name tells `load`, and the HDF5 writer, which parameters are shared.
                written.param.add(name=owners.setdefault(span, f"{layer.name}/{index}"))
        write_model(path, Model(net, [[view.numpy() for view in own] for own in self.values()]))

    def copy(self) -> WeightCollection:
        return WeightCollection(self.layout, self.flat.copy())

    def __reduce__(self) -> tuple[Any, ...]:
        return WeightCollection, (self.layout, self.flat)

    # -- layer name → arrays -------------------------------------------------------------

    def __getitem__(self, name: str) -> list[NDArray]:
        return self._views[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._views)

    def __len__(self) -> int:
        return len(self._views)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<WeightCollection: {len(self)} layers, {self.layout.size} weights>"

    # -- arithmetic ----------------------------------------------------------------------

    def __add__(self, other: WeightCollection) -> WeightCollection:
        return WeightCollection(self.layout, self.flat + self._like(other))

    def __sub__(self, other: WeightCollection) -> WeightCollection:
        return WeightCollection(self.layout, self.flat - self._like(other))

    def __mul__(self, factor: float) -> WeightCollection:
        return WeightCollection(self.layout, self.flat * _number(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> WeightCollection:
        return self * (1.0 / _number(divisor))

    def __neg__(self) -> WeightCollection:
        return self * -1.0

    def __iadd__(self, other: WeightCollection) -> WeightCollection:
        self.flat.add(self._like(other))
        return self

    def __isub__(self, other: WeightCollection) -> WeightCollection:
        self.flat.subtract(self._like(other))
        return self

    def __imul__(self, factor: float) -> WeightCollection:
        self.flat.scale(_number(factor))
        return self

    def __itruediv__(self, divisor: float) -> WeightCollection:
        self.flat.scale(1.0 / _number(divisor))
        return self

    @classmethod
    def mean(
        cls, collections: Sequence[WeightCollection], weights: Sequence[float] | None = None
    ) -> WeightCollection:
        """Σ weight · collection / Σ weight; without weights the plain mean."""
        collections = list(collections)
        if not collections:
            raise ArrayError("there is no mean of 0 weight collections")
        first = collections[0]
        flats = [first._like(other) for other in collections]
        return cls(first.layout, NDArray.weighted_mean(flats, weights))

    def distance(self, other: WeightCollection) -> float:
        """The Euclidean distance."""
        return self.flat.distance2(self._like(other))

    def norm(self) -> float:
        """The Euclidean length."""
        return self.flat.norm2()

    def allclose(self, other: WeightCollection, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Whether every |self - other| <= atol + rtol * |other|; NaN is close to nothing."""
        return self.flat.allclose(self._like(other), rtol, atol)

    def is_finite(self) -> bool:
        """Whether no weight is NaN or infinite."""
        return self.flat.is_finite()

    def check_finite(self) -> None:
        """Refuse NaN and infinity by the layer that has it."""
        if self.is_finite():
            return
        place = int(np.flatnonzero(~np.isfinite(self.flat.numpy()))[0])
        name, index = self.layout.locate(place)
        raise WeightsError(name, f"parameter {index} holds {self.flat.numpy()[place]}")

    def _like(self, other: WeightCollection) -> NDArray:
        if not isinstance(other, WeightCollection):
            raise ArrayError(f"a {type(other).__name__} is no WeightCollection")
        if self.layout == other.layout:
            return other.flat
        self.layout.check(other.layout)
        if self.layout.size < other.layout.size:
            raise WeightsError(self.layout.shared, "shares parameters that the second has twice")
        aligned = WeightCollection(self.layout)
        for name, views in aligned.items():
            for view, value in zip(views, other[name], strict=True):
                view.copy_from(value)
        return aligned.flat


def layout_of(net: Any) -> Layout:
    """The layout of a pycaffe net's weights, in order of first use; shared ones lie once."""
    layouts = Layouts()
    for name, blobs in net.params.items():
        arrays = [blob.data for blob in blobs]
        keys = [_address(array) if array.size else None for array in arrays]
        kind = net.layer_dict[name].type if name in net.layer_dict else ""
        layouts.add(name, kind, [tuple(array.shape) for array in arrays], keys)
    return layouts.done()


def _flat_of(net: Any, layout: Layout) -> NDArray | None:
    """The one buffer in which a net's weights lie.

    Other modules have none, nor has a net that shares some of another's weights.
    """
    flat = getattr(net, "flat_params", None)
    if not isinstance(flat, NDArray) or flat.size != layout.size:
        return None
    placed = all(
        array.size == 0 or _address(array) == flat.address + flat.dtype.itemsize * begin
        for layer in layout.layers
        for blob, begin in zip(net.params[layer.name], layer.begins, strict=True)
        for array in [blob.data]
    )
    return flat if placed else None


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _number(value: Any) -> float:
    if not isinstance(value, (int, float, np.number)):
        raise ArrayError(f"weights are scaled by a number, not by a {type(value).__name__}")
    return float(value)


def _check_alike(layer: LayerBlobs, other: LayerBlobs | None, second: str = "the second") -> None:
    def fail(message: str) -> NoReturn:
        raise WeightsError(layer.name, message)

    if other is None:
        fail(f"{second} has no such layer")
    if len(layer.shapes) != len(other.shapes):
        fail(f"has {len(layer.shapes)} parameters, {second} has {len(other.shapes)}")
    for index, (mine, theirs) in enumerate(zip(layer.shapes, other.shapes, strict=True)):
        if mine != theirs:
            fail(f"parameter {index} is {shape_text(mine)}, in {second} it is {shape_text(theirs)}")
