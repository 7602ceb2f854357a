"""Probe: the first task on the executors, which reports what it finds there."""

from __future__ import annotations

import json
import os
import platform
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sparknet.errors import CommError, SparkNetError
from sparknet.net.backend import CPU, backend_called
from sparknet.spark.footprint import room
from sparknet.spark.place_of_task import device_of, task_host
from sparknet.training.acceptor import open_port
from sparknet.training.handshake import PREFLIGHT
from sparknet.training.line import Link
from sparknet.training.rendezvous import Presence
from sparknet.training.wire import choose_seal

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "finding string"
_PATIENCE = 5.0
"""Seconds that a connection may take."""
_MEETING = 30.0
"""Seconds that the other workers may take to come, and may be silent."""

Address = tuple[str, int]


def look(batches: Iterable[pa.RecordBatch], link: Link, backend: str) -> Iterator[pa.RecordBatch]:
    """Yields a task's finding, after all tasks tried to reach each other."""
    import pyarrow as pa
    from pyspark import BarrierTaskContext

    for _ in batches:
        pass
    context = BarrierTaskContext.get()
    worker, size = context.partitionId(), len(context.getTaskInfos())
    finding = {"worker": worker, "unreached": _unreached(link, worker, size)}
    finding |= machine()
    finding["room"] = room()
    finding["backend"] = _lack(backend, context.resources())
    yield pa.RecordBatch.from_pydict({"finding": [json.dumps(finding)]})


def _unreached(link: Link, worker: int, size: int) -> list[Address]:
    """The addresses that this task cannot reach: the driver's, or other workers'."""
    where = task_host()
    try:
        line = link.dial(worker, PREFLIGHT)
    except CommError:
        return [link.driver]
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


def _lack(backend: str, resources: Mapping[str, Any]) -> str:
    """Why this process cannot train with a backend; empty if it can."""
    try:
        found = backend_called(backend)
        device = CPU if found.is_embedded else device_of(resources)
        lacking = found.lacking(gpu=device != CPU)
    except SparkNetError as error:
        return str(error)
    return f"backend '{backend}' has no {', '.join(lacking)}" if lacking else ""


def machine() -> dict[str, Any]:
    """The versions that driver and executors must share, and this process's place."""
    import sparknet
    import sparknet.spark.task  # the modules that training loads need memory too
    from sparknet import native

    return {
        "sparknet": sparknet.__version__,
        "onednn": native.onednn(),
        "seal": choose_seal("sealed"),
        "python": platform.python_version(),
        "host": socket.gethostname(),
        "process": os.getpid(),
    }


def _port(host: str) -> socket.socket:
    """A port as workers open it: on the address under which Spark knows this executor."""
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
