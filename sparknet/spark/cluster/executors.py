"""What the executors of a cluster have, told by one short job with a deadline.

The task travels as code: a Python that lacks sparknet runs it, too, and says so.
"""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from sparknet.errors import SparkError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_REACH = 5.0
"""Seconds that a master may take to accept a connection."""
_SETTLED = 2.0
"""Seconds without a new executor after which all are taken to be there."""
_TASKS = 64
"""Under Spark Connect, which does not tell the number of slots."""
_PORTS = {"https": 443, "http": 80, "sc": 15002}

Made = TypeVar("Made")


@dataclass(frozen=True)
class Executors:
    """Executors of one host that have the same: ``tasks`` of the job ran there."""

    host: str
    tasks: int
    python: str
    sparknet: str | None
    onednn: str | None
    instructions: str | None
    processors: int
    memory: int | None
    gpus: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    """The GPUs that Spark gave to the tasks, by the names that it has for them."""


def examine(master: str, seconds: float) -> list[Executors]:
    """Start a session there, look, and stop it; SparkError in one sentence after ``seconds``."""
    from sparknet.spark.cluster.session import get_session

    deadline = time.monotonic() + seconds
    reach(master)
    late = f"{master} gave no session within {seconds:g} s: see whether it is a master of Spark"
    session = _within(deadline, late, lambda: get_session(master=master, name="sparknet doctor"))
    try:
        return look(session, deadline)
    finally:
        stopping = threading.Thread(target=session.stop, daemon=True)
        stopping.start()
        stopping.join(_REACH)


def reach(master: str) -> None:
    """SparkError if nobody listens at any address of a master's URL; other URLs have none."""
    kind, _, rest = master.partition("://")
    if kind == "k8s":
        kind, _, rest = rest.partition("://") if "://" in rest else ("https", "", rest)
    if kind not in (*_PORTS, "spark"):
        return
    wrong = []
    for place in rest.split(","):
        try:
            address = urlsplit(f"//{place.partition(';')[0]}")
            host, port = address.hostname, address.port or _PORTS.get(kind, 7077)
            socket.create_connection((host or "", port), _REACH).close()
            return
        except (OSError, ValueError) as error:
            wrong.append(f"{place.partition('/')[0]}: {getattr(error, 'strerror', None) or error}")
    raise SparkError(f"the master {master} cannot be reached ({'; '.join(wrong)})")


def look(session: SparkSession, deadline: float) -> list[Executors]:
    """Return what the executors have, those of the same host and kind together."""
    from sparknet.spark.cluster.background_job import Job
    from sparknet.spark.cluster.preflight import translated

    tasks = _slots(session, deadline)
    frame = session.range(0, tasks, 1, tasks).mapInArrow(_by_value(), "finding string")
    with Job(session, frame, "sparknet: what executors have") as job:
        if not job.wait(max(deadline - time.monotonic(), 0)):
            raise SparkError(
                "the cluster did not run a short job in time: see whether its executors are free"
            )
        try:
            rows = job.result()
        except Exception as error:
            raise translated(error) from error
    kinds: dict[str, list[list[str]]] = {}
    for row in rows:
        finding = json.loads(row.finding)
        addresses = finding.pop("addresses")
        kinds.setdefault(json.dumps(finding, sort_keys=True), []).append(addresses)
    return [
        Executors(tasks=len(addresses), addresses=sorted({*chain(*addresses)}), **json.loads(one))
        for one, addresses in sorted(kinds.items())
    ]


def differences(there: Executors, here: Executors) -> Iterator[tuple[str, bool]]:
    """Yield a sentence for each, and whether sparknet cannot work there because of it."""
    if there.sparknet is None:
        yield (
            "Python there cannot import sparknet: install it, or send a packed environment with "
            "spark.archives",
            True,
        )
    elif there.sparknet != here.sparknet:
        yield f"sparknet is {there.sparknet} there, {here.sparknet} on the driver", True
    same_digits = "results may differ in their last digits"
    for name, what, effect in (
        ("onednn", "oneDNN is {}", f": {same_digits}"),
        ("python", "Python is {}", ""),
        ("instructions", "instructions go up to {}", f": {same_digits}"),
        ("processors", "{} processors", ""),
    ):
        values = [getattr(one, name) for one in (there, here)]
        is_known = there.sparknet or not effect
        if is_known and values[0] != values[1]:
            yield f"{what.format(values[0])} there, {values[1]} on the driver{effect}", False
    if there.memory and here.memory and abs(there.memory - here.memory) > here.memory / 100:
        yield (
            f"{gibibytes(there.memory)} of memory there, {gibibytes(here.memory)} on the driver",
            False,
        )


def driver() -> Executors:
    """Return the same of this process."""
    return Executors(tasks=0, **_facts())


def gibibytes(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def processors() -> int:
    """Return the number of those that this process may use."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        from sparknet.spark.cluster.containers import processors_limit
    except ImportError:  # where sparknet is not, the machine's
        return mine or 1
    limit = processors_limit()
    return min(mine or 1, ceil(limit)) if limit else mine or 1


def memory() -> int | None:
    """Return the memory in bytes: the container's limit, if it is less than the machine's."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        from sparknet.spark.cluster.containers import memory_limit
    except ImportError:  # where sparknet is not, the machine's
        return total
    return min(total, memory_limit() or total)


def _facts() -> dict[str, Any]:
    version = onednn = instructions = None
    gpus: list[str] = []
    try:
        import sparknet
        from sparknet import native
        from sparknet.spark.cluster.gpus import models

        version = sparknet.__version__
        onednn = native.onednn()
        instructions = native.onednn_isa()
        gpus = models()
    except Exception:  # the native core may be missing or fail in its own ways
        version = None
    return {
        "host": socket.gethostname(),
        "python": platform.python_version(),
        "sparknet": version,
        "onednn": onednn,
        "instructions": instructions,
        "processors": processors(),
        "memory": memory(),
        "gpus": gpus,
    }


def _task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pyarrow as arrow

    for _ in batches:
        pass
    from pyspark import TaskContext

    context = TaskContext.get()
    resources = {} if context is None else context.resources()
    addresses = list(resources["gpu"].addresses) if "gpu" in resources else []
    finding = json.dumps(_facts() | {"addresses": addresses})
    yield arrow.RecordBatch.from_pydict({"finding": [finding]})


def _by_value() -> Callable[[Any], Any]:
    """Return the task, with the functions of this module that it calls inside."""
    from pyspark import cloudpickle

    here = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(here)
    try:
        data = cloudpickle.dumps(_task)
    finally:
        cloudpickle.unregister_pickle_by_value(here)

    def look(batches: Any) -> Any:
        import pickle

        return pickle.loads(data)(batches)

    look.__module__ = "__main__"  # whose functions are pickled as code
    look.__annotations__ = {}  # as PySpark reads them
    return look


def _slots(session: SparkSession, deadline: float) -> int:
    """Return the number of tasks that run at once, when no more executors come."""
    from sparknet.spark.cluster.background_job import is_classic
    from sparknet.spark.cluster.preflight import slots_of
    from sparknet.spark.cluster.session import is_local

    if not is_classic(session):
        return _TASKS
    slots, since = slots_of(session), time.monotonic()
    while not is_local(session) and (slots == 0 or time.monotonic() < since + _SETTLED):
        if time.monotonic() > deadline:
            raise SparkError("the master gave no executor in time: see whether it has free cores")
        time.sleep(0.1)
        if (now := slots_of(session)) != slots:
            slots, since = now, time.monotonic()
    return max(slots, 1)


def _within(deadline: float, late: str, work: Callable[[], Made]) -> Made:
    """Return what ``work`` gives, or SparkError if it takes longer: it is left to itself then."""
    results: list[Made] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:  # raised below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(deadline - time.monotonic(), 0))
    if failed:
        from sparknet.spark.cluster.preflight import translated

        error = failed[0]
        raise error if isinstance(error, SparkError) else translated(error) from error
    if not results:
        raise SparkError(late)
    return results[0]
