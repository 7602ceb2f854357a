"""Scattered: parameters that each lie in memory of their own, and one flat buffer for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sparknet.errors import WeightsError
from sparknet.native import NDArray
from sparknet.weights.layout import Layout, Span


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
