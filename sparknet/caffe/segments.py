"""Splits a pass into runs of layers that the engine computes in one call, and layers that live in
Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sparknet.caffe.blob import Blob
from sparknet.graph import Node
from sparknet.layers.host import Host


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
    """What layers in Python read in their backward pass after a layer in place has overwritten it.

    The engine keeps the same for its own layers: native/engine/plan/backups.cpp.
    """

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
