"""Layers that live in Python, between runs of the engine's: their passes, errors and times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from sparknet.caffe.blob import Blob
from sparknet.errors import LayerError, SparkNetError
from sparknet.graph import Node
from sparknet.layers.host import Host
from sparknet.layers.layer import Shape, shape_text
from sparknet.layers.python import PythonHost


@dataclass(frozen=True)
class Segment:
    """Layers first … last, in one native call; or one layer that lives in Python."""

    first: int
    last: int
    host: Host | None = None


def segments_of(nodes: Sequence[Node], hosts: Mapping[int, Host]) -> Iterator[Segment]:
    first = 0
    for number, node in enumerate(nodes):
        if number in hosts:
            if first < number:
                yield Segment(first, number - 1)
            yield Segment(number, number, hosts[number])
            first = number + 1
        elif node.layer.has_dynamic_tops:
            # The layers that follow adopt the shapes that the data gave.
            yield Segment(first, number)
            first = number + 1
    if first < len(nodes):
        yield Segment(first, len(nodes) - 1)


class Backups:
    """Values for the backward pass of Python layers, saved from layers in place."""

    def __init__(
        self, nodes: Sequence[Node], hosts: Mapping[int, Host], blobs: Sequence[Blob]
    ) -> None:
        last_writer: dict[int, int] = {}
        memory: dict[int, int] = {}
        for number, node in enumerate(nodes):
            is_view = node.layer.is_view and node.bottom_ids
            for top in node.top_ids:
                if top in node.bottom_ids:
                    last_writer[memory[top]] = number
                else:
                    memory[top] = memory[node.bottom_ids[0]] if is_view else top
        self._values: dict[int, list[tuple[Blob, Any]]] = {}
        self._blobs = {
            number: [
                blobs[blob]
                for blob in {*node.bottom_ids, *node.top_ids}
                if last_writer.get(memory[blob], 0) > number
            ]
            for number, node in enumerate(nodes)
            if number in hosts and node.needs_backward
        }

    def take(self, number: int) -> None:
        """Copy what the layer has read and written; its forward pass has just ended."""
        self._values[number] = [(blob, blob.data.copy()) for blob in self._blobs.get(number, ())]

    @contextmanager
    def used(self, number: int) -> Iterator[None]:
        """Let the layer's blobs have the values that they had then."""
        later = [(blob, blob.data.copy()) for blob in self._blobs.get(number, ())]
        try:
            _put(self._values.get(number, ()))
            yield
        finally:
            _put(later)


def _put(pairs: Iterable[tuple[Blob, Any]]) -> None:
    for blob, values in pairs:
        blob.data[...] = values


FOREIGN = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What numpy raises where shapes or values fit no rule that the layer has checked."""


@contextmanager
def layer_errors(host: Host, node: Node, shapes: Sequence[Shape]) -> Iterator[None]:
    """Name a layer of ours in its error; ``shapes`` are those of all blobs of the net."""
    try:
        yield
    except FOREIGN as error:
        if isinstance(error, SparkNetError) or isinstance(host, PythonHost):
            raise
        bottoms = ", ".join(shape_text(shapes[blob]) for blob in node.bottom_ids)
        inputs = f"inputs of {bottoms}" if bottoms else "its options"
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise LayerError(
            node.name, f"{node.type}: cannot be computed for {inputs}: {reason}"
        ) from error


FORWARD, BACKWARD = 0, 1


class HostClocks:
    """Nanoseconds by layer number, forward and backward.  They stand still at first."""

    def __init__(self) -> None:
        self._spent: tuple[dict[int, float], dict[int, float]] | None = None

    def run(self, on: bool) -> None:
        """Start all clocks from 0, or stop them."""
        self._spent = ({}, {}) if on else None

    def put_into(self, passes: tuple[list[float], list[float]]) -> None:
        """Write the times into lists of one number a layer."""
        for times, spent in zip(passes, self._spent or ({}, {}), strict=True):
            for number, nanoseconds in spent.items():
                times[number] = nanoseconds

    @contextmanager
    def timed(self, which: int, number: int) -> Iterator[None]:
        """Time a layer's pass, if the clocks run."""
        if self._spent is None:
            yield
            return
        start = perf_counter_ns()
        yield
        spent = self._spent[which]
        spent[number] = spent.get(number, 0.0) + perf_counter_ns() - start
