"""Probe: the first task on the executors, which reports what it finds there."""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.caffe.solvers import SOLVERS
from sparknet.comm.acceptor import open_port
from sparknet.comm.handshake import PREFLIGHT
from sparknet.comm.rpc import Link
from sparknet.comm.wire import choose_seal
from sparknet.devices import (
    check_device,
    device_of_worker,
    resolve_device,
    uses_task_gpu,
)
from sparknet.errors import CommError, SparkNetError
from sparknet.graph import Graph
from sparknet.net import Net
from sparknet.net.backend import CPU, backend_called
from sparknet.spark.cluster.gpus import device_of, task_host
from sparknet.training.driver.rendezvous import Presence
from sparknet.training.training_net import settings
from sparknet.weights import layout_of

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "finding string"
_PATIENCE = 5.0
"""Seconds that a connection may take."""
_MEETING = 30.0
"""Seconds that the other workers may take to come, and may be silent."""

Address = tuple[str, int]


def look(
    batches: Iterable[pa.RecordBatch], link: Link, backend: str, device: str | None, together: bool
) -> Iterator[pa.RecordBatch]:
    """Yields a task's finding; tasks that run ``together`` try to reach each other before."""
    import pyarrow as pa
    from pyspark import BarrierTaskContext, TaskContext

    for _ in batches:
        pass
    context: Any = (BarrierTaskContext if together else TaskContext).get()
    worker, resources = context.partitionId(), context.resources()
    finding = {
        "worker": worker,
        "unreached": _unreached(link, worker, len(context.getTaskInfos()) if together else None),
        **machine(),
        "room": room(),
        "backend": _lack(backend, device, worker, resources),
        "gpus": list(resources["gpu"].addresses) if "gpu" in resources else [],
    }
    yield pa.RecordBatch.from_pydict({"finding": [json.dumps(finding)]})


def _unreached(link: Link, worker: int, size: int | None) -> list[Address]:
    """Return the addresses that this task cannot reach: the driver's, or other workers'."""
    try:
        line = link.dial(worker, PREFLIGHT)
    except CommError:
        return [link.driver]
    if size is None:
        line.close()
        return []
    where = task_host()
    with closing(line), closing(_port(where)) as listener:
        mine = where, listener.getsockname()[1]
        try:
            with Presence(line, "preflight", size, where, _MEETING) as presence:
                everybody = presence.meet(mine, _MEETING)["workers"]
            unreached = [address for address in everybody if not _reaches(address)]
            with Presence(line, "aside", size, where, _MEETING) as presence:
                presence.meet()
        except CommError:  # the worker that could not come reports why
            return []
    return unreached


def _lack(backend: str, device: str | None, worker: int, resources: Mapping[str, Any]) -> str:
    """Why this process cannot train with a backend, or on a device; empty if it can."""
    try:
        implementation = backend_called(backend)
        asks = not implementation.is_embedded or uses_task_gpu(device)
        gpu = device_of(resources) if asks else CPU
        if implementation.is_embedded:
            mine = resolve_device(device_of_worker(device, worker, None if gpu == CPU else gpu))
            if mine is not None:
                check_device(mine)
        lacking = implementation.lacking(gpu=gpu != CPU and not implementation.is_embedded)
    except SparkNetError as error:
        return str(error)
    return f"backend '{backend}' has no {', '.join(lacking)}" if lacking else ""


def machine() -> dict[str, Any]:
    """Return the versions that driver and executors must share, and this process's place."""
    import sparknet
    import sparknet.spark.hosts.task  # the modules that training loads need memory too

    return {
        "sparknet": sparknet.__version__,
        "seal": choose_seal("sealed"),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "process": os.getpid(),
    }


def _port(host: str) -> socket.socket:
    """Return a port as workers open it: on the address under which Spark knows this executor."""
    try:
        return open_port(host, (0,))
    except CommError:  # a container's address as seen from outside
        return open_port("", (0,))


def _reaches(address: Address) -> bool:
    try:
        socket.create_connection((address[0], address[1]), _PATIENCE).close()
    except OSError:
        return False
    return True


_FLOAT = 4
THREADS = 256 << 20
"""Address space of a worker's threads in bytes: each has a stack and a malloc arena."""


def footprint(net: Net) -> int:
    """Return the least memory of training, in bytes.

    It counts weights, gradients, the solver's histories, the last synchronised weights, and the
    values stored for the backward pass; not other blobs and gradients, which share memory, nor
    the records, nor the memory of oneDNN.
    """
    copies = 3 + SOLVERS[settings(net).type].histories
    parameters = layout_of(net.net).size
    waiting = _waiting(net.net.graph) if net.backend.is_embedded else 0
    return _FLOAT * (copies * parameters + waiting) + THREADS


def _waiting(graph: Graph) -> int:
    """Return the number of values that gradients of weights need: the layers' bottoms."""
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
    """Return the limit of this process's address space, and how much is left; None without a limit.

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
