"""WeightCollection: a net's weights by layer name, over one flat buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from sparknet.errors import ArrayError, WeightsError
from sparknet.layers.layer import shape_text
from sparknet.native import NDArray
from sparknet.native.arithmetic import ArrayLike
from sparknet.weights.files import StrPath, read_weights, write_weights
from sparknet.weights.layout import Layout, Layouts, Scattered, flat_of, layout_of

Array = np.ndarray[Any, Any]


class WeightCollection(Mapping[str, list[NDArray]]):
    """Layer name → the layer's parameters, as views of one flat float32 buffer, `flat`.

    A parameter that several layers share is stored once.  Arithmetic needs collections of the
    same layout and returns new ones; ``+=``, ``-=``, ``*=`` and ``/=`` compute in place.
    Collections compare by identity: see `allclose`.

    >>> from sparknet import LinearLayer, Net, NetParams, RDDLayer
    >>> net = NetParams("n", RDDLayer("data", [8, 2]), LinearLayer("ip", "data", num_outputs=3))
    >>> weights = Net(net).get_weights()
    >>> [array.shape for array in weights["ip"]]
    [(3, 2), (3,)]
    >>> WeightCollection.mean([weights, 3 * weights]).allclose(2 * weights)
    True
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

    # -- from and to nets and files --------------------------------------------------

    @classmethod
    def of(cls, net: Any, copy: bool | None = True) -> WeightCollection:
        """Return the weights of a pycaffe net.

        Without `copy` they are views of the net's memory, which only the embedded engine allows;
        with None they are views where that is so, and else a copy."""
        layout = layout_of(net)
        flat = flat_of(net, layout)
        if flat is not None:
            return cls(layout, flat.copy() if copy else flat)
        if copy is False:
            raise ArrayError(
                "this net's weights do not lie in one buffer: only copies are to be had"
            )
        collection = cls(layout, NDArray.empty((layout.size,)))
        Scattered.values(net, layout).gather(collection.flat)
        return collection

    def to_net(self, net: Any) -> None:
        """Copy the weights into a pycaffe net, which must have exactly these layers."""
        layout = layout_of(net)
        self.layout.check(layout, "the net")
        flat = flat_of(net, layout)
        if flat is not None and layout == self.layout:
            flat.copy_from(self.flat)
            return
        Scattered.values(net, self.layout).scatter(self.flat)

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, ArrayLike | Sequence[ArrayLike]]) -> WeightCollection:
        """Return a copy of arrays by layer name, as `Net.forward` returns them."""
        layouts, lists = Layouts(), dict[str, list[Array]]()
        for name, value in arrays.items():
            listed = value if isinstance(value, list | tuple) else [value]
            lists[name] = [np.asarray(array, np.float32) for array in listed]
            shapes = [array.shape for array in lists[name]]
            layouts.add(name, "", shapes, [None] * len(shapes))
        return cls._copied(layouts.done(), lists)

    @classmethod
    def load(cls, path: StrPath) -> WeightCollection:
        """Return the weights of a caffemodel of any age, or of an HDF5 file."""
        return cls._copied(*read_weights(path))

    @classmethod
    def _copied(cls, layout: Layout, arrays: Mapping[str, Sequence[Array]]) -> WeightCollection:
        collection = cls(layout)
        for name, views in collection.items():
            for view, array in zip(views, arrays[name], strict=True):
                view.copy_from(array)
        return collection

    def save(self, path: StrPath) -> None:
        """Write a caffemodel; HDF5 if the name ends in .h5."""
        write_weights(path, self.layout, [[view.numpy() for view in own] for own in self.values()])

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

    def __add__(self, other: WeightCollection | Literal[0]) -> WeightCollection:
        """Add a collection, or the 0 with which `sum` and Spark's `RDD.sum` begin."""
        if isinstance(other, int) and not other:
            return self.copy()
        return WeightCollection(self.layout, self.flat + self._like(other))

    __radd__ = __add__

    def __sub__(self, other: WeightCollection) -> WeightCollection:
        return WeightCollection(self.layout, self.flat - self._like(other))

    def __mul__(self, factor: float) -> WeightCollection:
        return WeightCollection(self.layout, self.flat * _number(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> WeightCollection:
        return self * (1.0 / _number(divisor))

    def __neg__(self) -> WeightCollection:
        return self * -1.0

    def __iadd__(self, other: WeightCollection | Literal[0]) -> WeightCollection:
        if not isinstance(other, int) or other:
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
        """Return the Euclidean distance."""
        return self.flat.distance2(self._like(other))

    def norm(self) -> float:
        """Return the Euclidean length."""
        return self.flat.norm2()

    def allclose(self, other: WeightCollection, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
        """Return whether every |self - other| <= atol + rtol * |other|; NaN is close to nothing."""
        return self.flat.allclose(self._like(other), rtol, atol)

    def is_finite(self) -> bool:
        """Return whether no weight is NaN or infinite."""
        return self.flat.is_finite()

    def check_finite(self) -> None:
        """WeightsError with the layer's name if a weight is NaN or infinite."""
        if self.is_finite():
            return
        place = int(np.flatnonzero(~np.isfinite(self.flat.numpy()))[0])
        name, index = self.layout.locate(place)
        raise WeightsError(name, f"parameter {index} holds {self.flat.numpy()[place]}")

    def _like(self, other: WeightCollection | int) -> NDArray:
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


def _number(value: Any) -> float:
    if not isinstance(value, (int, float, np.number)):
        raise ArrayError(f"weights are scaled by a number, not by a {type(value).__name__}")
    return float(value)
