"""Footprint: the memory that training takes in each worker, and what a limit leaves of it."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

from sparknet.graph import Graph
from sparknet.net import Net

_FLOAT = 4
_THREADS = 256 << 20
"""Bytes of address space for a worker's threads: each has a stack and an arena of malloc's."""


def footprint(net: Net) -> int:
    """Bytes that training takes at the least.

    Weights, gradients, the solver's histories, the last synchronised weights, and the values that
    wait for the backward pass: not other blobs and gradients, which share memory, nor the
    records, nor what oneDNN takes at the first pass.
    """
    copies = 3 + len(net.solver.flat_history)
    parameters = int(net.net.flat_params.size)
    return _FLOAT * (copies * parameters + _waiting(net.net.graph)) + _THREADS


def _waiting(graph: Graph) -> int:
    """Values that gradients of weights are made of: what a layer multiplied with them."""
    source: dict[str, str] = {}
    waiting = set()
    for node in graph.nodes:
        bottoms = [source.get(bottom, bottom) for bottom in node.bottoms]
        shapes = [graph.blob_shapes[blob] for blob in node.bottom_ids]
        learns = any(ref.needs_gradient for ref in node.params)
        if node.layer.is_view and bottoms:
            source |= dict.fromkeys(node.tops, bottoms[0])
        elif learns and node.layer.products(node.plan, shapes):
            waiting |= set(bottoms)
    return sum(prod(graph.blobs[name]) for name in waiting)


def room() -> tuple[int, int] | None:
    """The limit of this process's address space, and what is left of it; None without a limit.

    Spark sets one (RLIMIT_AS) to a core's part of spark.executor.pyspark.memory.
    """
    statm = Path("/proc/self/statm")
    try:
        import resource
    except ImportError:  # Windows knows no limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or not statm.exists():  # macOS does not keep to it
        return None
    used = int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return limit, limit - used
