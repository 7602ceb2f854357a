"""Splits a pass into runs of layers that the engine computes in one call, and layers that live in
Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparknet.caffe.host import Host
from sparknet.graph import Node


@dataclass(frozen=True)
class Segment:
    """Layers first … last, in one native call; or one layer that lives in Python."""

    first: int
    last: int
    host: Host | None = None


def cut(nodes: Sequence[Node], hosts: Mapping[int, Host]) -> Iterator[Segment]:
    first = 0
    for number, node in enumerate(nodes):
        if number in hosts:
            if first < number:
                yield Segment(first, number - 1)
            yield Segment(number, number, hosts[number])
            first = number + 1
        elif node.layer.reshapes:
            # The layers that follow adopt the shapes that the data gave.
            yield Segment(first, number)
            first = number + 1
    if first < len(nodes):
        yield Segment(first, len(nodes) - 1)
