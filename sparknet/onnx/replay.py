"""Constants that depend on open sizes, for other sizes than those of the reading."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from sparknet.layers import Shape
from sparknet.onnx.folding import fold
from sparknet.onnx.limits import MALFORMED, Room
from sparknet.onnx.sizes import RECORDS, evaluate_all, symbols
from sparknet.onnx.source import Array, OnnxNode, Source

_NUMBERS = (1, 2, 3, 64, 1000)
"""Records, and lengths of sequences, for which a constant is computed again."""
_SIDES = (32, 64, 96, 640)
"""Heights and widths of images."""
_MOST = 10**6
_COMPARING = ("Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min")


class Folds:
    """What makes each constant that depends on open sizes: a node, and the shape that it reads."""

    def __init__(
        self,
        source: Source,
        values: Mapping[str, Any],
        open_sizes: Mapping[str, int],
        lengths: Collection[str],
        is_open: Callable[[int], bool],
    ) -> None:
        """Take what stands for the open sizes in the values, and which are lengths."""
        self.source, self.values, self.is_open = source, values, is_open
        self.open_sizes, self._lengths = open_sizes, lengths
        self.nodes: dict[str, tuple[OnnxNode, Shape | None]] = {}
        self._replays: dict[tuple[str, int], Replay] = {}

    def note(self, node: OnnxNode, shape: Sequence[int] | None = None) -> None:
        """Remember a node that folds, if what it reads depends on open sizes."""
        is_open = not self.nodes.keys().isdisjoint(node.inputs)
        if is_open if shape is None else any(map(symbols, shape)):
            entry = node, None if shape is None else tuple(shape)
            self.nodes.update(dict.fromkeys(filter(None, node.outputs), entry))

    def sizes(self, length: Callable[[int], int]) -> dict[str, int]:
        """Return the open sizes, with other lengths of sequences."""
        lengths = {name: length(self.open_sizes[name]) for name in self._lengths}
        return {**self.open_sizes, **lengths}

    def varies(self, name: str, symbols: Iterable[str] | None = None) -> bool:
        """Return whether a constant has other numbers for other open sizes, all or some."""
        others = self._others(self.open_sizes if symbols is None else symbols)
        return name in self.nodes and not all(one.continues(name) for one in others)

    def follows(self, name: str, sizes: Array) -> bool:
        """Return whether a constant has these sizes for any open ones."""
        return all(one.has(name, sizes) for one in self._others(self.open_sizes))

    def counts(self, name: str) -> bool:
        """Return whether a constant counts on along one of its axes, for any open sizes."""
        arrays = [self.values[name]]
        for one in self._others(self.open_sizes):
            with suppress(*MALFORMED):
                arrays.append(one.array(name))
        axes = range(arrays[0].ndim)
        return any(all(np.all(np.diff(one, axis=axis) == 1) for one in arrays) for axis in axes)

    def _others(self, symbols: Iterable[str]) -> Iterator[Replay]:
        for symbol in symbols:
            for number in self._numbers(symbol):
                yield self._replay(symbol, number)

    def _replay(self, symbol: str, number: int) -> Replay:
        key = symbol, number
        if key not in self._replays:
            self._replays[key] = Replay(self, {**self.open_sizes, symbol: number})
        return self._replays[key]

    def _numbers(self, symbol: str) -> set[int]:
        """Return values of an open size: usual ones, and those at which a comparison turns."""
        if symbol != RECORDS and symbol not in self._lengths:
            return {*_SIDES}
        compared = {id(node): node for node, _ in self.nodes.values() if node.op in _COMPARING}
        return {
            *_NUMBERS,
            *(one for node in compared.values() for one in self._turns(node, symbol)),
        }

    def _turns(self, node: OnnxNode, symbol: str) -> Iterator[int]:
        """Find where two inputs meet that change evenly with an open size."""
        example, lines = self.open_sizes[symbol], []
        with suppress(*MALFORMED), np.errstate(divide="ignore", invalid="ignore"):
            for name in filter(None, node.inputs):
                start = self.values[name].astype(float)
                lines.append((start, self._replay(symbol, example + 1).array(name) - start))
            for (start, slope), (other, its) in pairwise(lines):
                meets = np.unique(example + (other - start) / (slope - its))
                yield from (int(one) for one in meets[np.isfinite(meets)] if 1 <= one < _MOST)

    @cached_property
    def shorter(self) -> Replay:
        """The constants for sequences of one place less."""
        return Replay(self, self.sizes(lambda length: length - 1))

    def depends_on_length(self, name: str) -> bool:
        """Return whether a constant changes with the length of sequences, and with nothing else."""
        return self.varies(name, self._lengths) and not self.varies(name, [RECORDS])


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

    def continues(self, name: str) -> bool:
        """Return whether a constant is that of the reading, as far as both reach."""
        try:
            array = self.array(name)
        except MALFORMED:
            return True  # the model takes no such size
        example = self._folds.values[name]
        pairs = [*zip(array.shape, example.shape, strict=False)]
        if array.ndim != example.ndim or any(
            size != its and not self._folds.is_open(its) for size, its in pairs
        ):
            return False
        part = tuple(slice(min(pair)) for pair in pairs)
        if array.dtype.kind == "f":
            return bool(np.allclose(array[part], example[part], 1e-6, 0, equal_nan=True))
        return bool(np.array_equal(array[part], example[part]))

    def has(self, name: str, sizes: Array) -> bool:
        """Return whether a constant has these sizes."""
        try:
            return np.array_equal(self.array(name).ravel(), evaluate_all(sizes, self._sizes))
        except MALFORMED:
            return True  # the model takes no such size

    def _fold(self, node: OnnxNode, shape: Shape | None) -> None:
        values = self._folds.values
        inputs = [self._arrays.get(one, values.get(one)) for one in node.inputs]
        if shape is not None:
            inputs = [np.broadcast_to(np.float32(0), evaluate_all(shape, self._sizes))]
        results = fold(node, inputs)
        self._room.take(results, inputs)
        self._arrays.update(zip(node.outputs, results, strict=False))
