"""Constants that depend on open sizes, for other sizes than those of the reading."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sparknet.layers import Shape
from sparknet.onnx.folding import fold
from sparknet.onnx.limits import MALFORMED, Room
from sparknet.onnx.sizes import RECORDS, evaluate_all, symbols
from sparknet.onnx.source import Array, OnnxNode, Source


class Folds:
    """What makes each constant that depends on open sizes: a node, and the shape that it reads."""

    def __init__(
        self,
        source: Source,
        values: Mapping[str, Any],
        open_sizes: Mapping[str, int],
        lengths: Collection[str],
    ) -> None:
        """Take what stands for the open sizes in the values, and which are lengths."""
        self.source, self.values = source, values
        self._open_sizes, self._lengths = open_sizes, lengths
        self.nodes: dict[str, tuple[OnnxNode, Shape | None]] = {}

    def note(self, node: OnnxNode, shape: Sequence[int] | None = None) -> None:
        """Remember a node that folds, if what it reads depends on open sizes."""
        is_open = not self.nodes.keys().isdisjoint(node.inputs)
        if is_open if shape is None else any(map(symbols, shape)):
            entry = node, None if shape is None else tuple(shape)
            self.nodes.update(dict.fromkeys(filter(None, node.outputs), entry))

    def sizes(self, records: int = 0, length: Callable[[int], int] = int) -> dict[str, int]:
        """Return the open sizes, with so many records more, and other lengths of sequences."""
        sizes = {
            name: length(size) if name in self._lengths else size
            for name, size in self._open_sizes.items()
        }
        return {**sizes, RECORDS: sizes[RECORDS] + records}

    @cached_property
    def shorter(self) -> Replay:
        """The constants for sequences of one place less."""
        return Replay(self, self.sizes(length=lambda length: length - 1))

    @cached_property
    def _half(self) -> Replay:
        return Replay(self, self.sizes(length=lambda length: (length + 1) // 2))

    @cached_property
    def _fewer(self) -> Replay:
        return Replay(self, self.sizes(records=-1))

    def depends_on_length(self, name: str) -> bool:
        """Return whether a constant changes with the length of sequences, and with nothing else."""
        is_known = name in self.nodes and self._fewer.is_same(name)
        return is_known and not (self.shorter.is_same(name) and self._half.is_same(name))


class Replay:
    """Constants of a reading, computed again for other open sizes."""

    def __init__(self, folds: Folds, sizes: Mapping[str, int]) -> None:
        self._folds, self._sizes = folds, sizes
        self._arrays: dict[str, Array] = {}
        self._room = Room(folds.source.constants.values(), folds.source.is_trusted)

    def array(self, name: str) -> Array:
        """Return a constant; raises what its folds raise."""
        nodes, needed, waiting = self._folds.nodes, set[str](), [name]
        while waiting:
            one = waiting.pop()
            if one in nodes and one not in self._arrays and one not in needed:
                needed.add(one)
                waiting.extend(nodes[one][0].inputs)
        for one in [one for one in nodes if one in needed]:
            if one not in self._arrays:
                self._fold(*nodes[one])
        array: Array = self._arrays.get(name, self._folds.values[name])
        return array

    def is_same(self, name: str) -> bool:
        """Return whether a constant is that of the reading."""
        try:
            array = self.array(name)
        except MALFORMED:
            return False
        is_float = array.dtype.kind == "f"
        return np.array_equal(self._folds.values[name], array, equal_nan=is_float)

    def _fold(self, node: OnnxNode, shape: Shape | None) -> None:
        values = self._folds.values
        inputs = [self._arrays.get(one, values.get(one)) for one in node.inputs]
        if shape is not None:
            inputs = [np.broadcast_to(np.float32(0), evaluate_all(shape, self._sizes))]
        results = fold(node, inputs)
        self._room.take(results, inputs)
        self._arrays.update(zip(node.outputs, results, strict=False))
