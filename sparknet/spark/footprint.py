"""Footprint: the memory that training needs in each worker, and the room under a limit."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

from sparknet.caffe.solvers import SOLVERS
from sparknet.graph import Graph
from sparknet.net import Net
from sparknet.training.training_net import settings
from sparknet.weights import layout_of

_FLOAT = 4
THREADS = 256 << 20
"""Address space of a worker's threads in bytes: each has a stack and a malloc arena."""


def footprint(net: Net) -> int:
    """The least memory of training, in bytes.

    It counts weights, gradients, the solver's histories, the last synchronised weights, and the
    values stored for the backward pass; not other blobs and gradients, which share memory, nor
    the records, nor the memory of oneDNN.
    """
    copies = 3 + SOLVERS[settings(net).type].histories
    parameters = layout_of(net.net).size
    waiting = _waiting(net.net.graph) if net.backend.is_embedded else 0
    return _FLOAT * (copies * parameters + waiting) + THREADS


def _waiting(graph: Graph) -> int:
    """The number of values that gradients of weights need: the layers' bottoms."""
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
    """The limit of this process's address space, and how much is left; None without a limit.

    Spark sets one (RLIMIT_AS) to a core's part of spark.executor.pyspark.memory.
    """
    statm = Path("/proc/self/statm")
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or not statm.exists():  # macOS does not enforce it
        return None
    used = int(statm.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return limit, limit - used
