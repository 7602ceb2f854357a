"""Where a pass changes hands: runs of layers that the engine computes in one call, and layers that
live in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparknet.caffe.host import Host
from sparknet.graph import Node

RESHAPING = frozenset({"Filter", "DetectionOutput"})
"""Types whose top shapes depend on data: a run ends with them, and what follows takes the shapes
on."""


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
        elif node.type in RESHAPING:
            yield Segment(first, number)
            first = number + 1
    if first < len(nodes):
        yield Segment(first, len(nodes) - 1)
