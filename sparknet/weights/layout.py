"""Layout: where each layer's blobs lie in one flat buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sparknet.errors import ArrayError, WeightsError
from sparknet.layers import LAYERS, Shape
from sparknet.layers.layer import count, shape_text
from sparknet.native import NDArray
from sparknet.native.alone import cached_property

Span = tuple[int, int]


@dataclass(frozen=True)
class LayerBlobs:
    """A layer's parameter blobs: their shapes, and where each begins in the flat buffer."""

    name: str
    shapes: tuple[Shape, ...]
    begins: tuple[int, ...]
    type: str = field(default="", compare=False)
    """The layer's type; empty where a file does not contain it (HDF5)."""

    @property
    def spans(self) -> list[Span]:
        """The begin and end of each blob in the flat buffer."""
        sizes = map(count, self.shapes)
        return [(begin, begin + size) for begin, size in zip(self.begins, sizes, strict=True)]


@dataclass(frozen=True)
class Layout:
    """The layers of a flat buffer of weights, in order, and their places in it."""

    layers: tuple[LayerBlobs, ...]

    @cached_property
    def size(self) -> int:
        """The length of the flat buffer."""
        return max((end for layer in self.layers for _, end in layer.spans), default=0)

    @cached_property
    def statistics(self) -> tuple[Span, ...]:
        """The spans of running sums in the flat buffer, which no gradient changes, in order."""
        layers = (layer for layer in self.layers if layer.type in LAYERS)
        spans = {span for layer in layers for span in layer.spans[LAYERS[layer.type].statistics]}
        merged: list[Span] = []
        for begin, end in sorted(spans):
            if merged and merged[-1][1] >= begin:
                begin = merged.pop()[0]
            merged.append((begin, end))
        return tuple(merged)

    @cached_property
    def by_name(self) -> dict[str, LayerBlobs]:
        return {layer.name: layer for layer in self.layers}

    def check(self, other: Layout, second: str = "the second") -> None:
        """Refuse weights of other layers and name the first difference; their order may differ."""
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

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.layers,)

    def locate(self, place: int) -> tuple[str, int]:
        """Return the layer and the blob at a place of the flat buffer."""
        for layer in self.layers:
            for index, (begin, end) in enumerate(layer.spans):
                if begin <= place < end:
                    return layer.name, index
        raise ArrayError(f"place {place} lies outside the {self.size} weights")


class Layouts:
    """Builds a layout layer by layer; blobs of the same key share a place."""

    def __init__(self) -> None:
        self._layers: list[LayerBlobs] = []
        self._places: dict[object, Span] = {}
        self._size = 0

    def add(self, name: str, kind: str, shapes: Sequence[Shape], keys: Sequence[object]) -> None:
        """Add a layer; blobs with key None are not shared."""
        begins = tuple(map(self._begin, map(count, shapes), keys))
        self._layers.append(LayerBlobs(name, tuple(shapes), begins, kind))

    def done(self) -> Layout:
        return Layout(tuple(self._layers))

    def _begin(self, size: int, key: object) -> int:
        start = self._places.get(key)
        if key is not None and start is not None and start[1] == size:
            return start[0]
        begin, self._size = self._size, self._size + size
        self._places[key] = (begin, size)
        return begin


def layout_of(net: Any) -> Layout:
    """Return the layout of a pycaffe net's weights, in order of first use."""
    layouts = Layouts()
    for name, blobs in net.params.items():
        arrays = [blob.data for blob in blobs]
        keys = [_address(array) if array.size else None for array in arrays]
        kind = net.layer_dict[name].type if name in net.layer_dict else ""
        layouts.add(name, kind, [tuple(array.shape) for array in arrays], keys)
    return layouts.done()


def flat_of(net: Any, layout: Layout) -> NDArray | None:
    """Return the single buffer of a net's weights; None if it has none of its own."""
    flat = getattr(net, "flat_params", None)
    if not isinstance(flat, NDArray) or flat.size != layout.size:
        return None
    contiguous = all(
        array.size == 0 or _address(array) == flat.address + flat.dtype.itemsize * begin
        for layer in layout.layers
        for blob, begin in zip(net.params[layer.name], layer.begins, strict=True)
        for array in [blob.data]
    )
    return flat if contiguous else None


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


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


class Scattered:
    """The values or the gradients of a pycaffe net's parameters, in the places of a layout."""

    def __init__(self, net: Any, layout: Layout, read: Callable[[Any], Any]) -> None:
        self._net, self._layout, self._read = net, layout, read

    @classmethod
    def values(cls, net: Any, layout: Layout) -> Scattered:
        return cls(net, layout, lambda blob: blob.data)

    @classmethod
    def gradients(cls, net: Any, layout: Layout) -> Scattered:
        return cls(net, layout, lambda blob: blob.diff)

    def gather(self, flat: NDArray) -> None:
        """Copy the arrays into a flat buffer."""
        for (begin, end), array in self._arrays():
            flat[begin:end].reshape(array.shape).copy_from(array)

    def scatter(self, flat: NDArray) -> None:
        """Copy a flat buffer into the arrays."""
        for (begin, end), array in self._arrays():
            NDArray.view(array).copy_from(flat[begin:end].reshape(array.shape))

    def _arrays(self) -> Iterator[tuple[Span, Any]]:
        for layer in self._layout.layers:
            for span, blob in zip(layer.spans, self._net.params[layer.name], strict=True):
                array = self._read(blob)
                if array.dtype != "float32":
                    raise WeightsError(layer.name, f"holds {array.dtype}, not float32")
                yield span, array
