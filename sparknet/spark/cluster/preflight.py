"""Preflight: checks the cluster before a long job, which would fail late or wait for ever."""

from __future__ import annotations

import json
import logging
import re
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from math import inf
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sparknet.comm.rpc import Link
from sparknet.comm.wire import AES_GCM, GMAC, HMAC
from sparknet.errors import SparkError
from sparknet.net.backend import EMBEDDED
from sparknet.spark.cluster import containers, probe
from sparknet.spark.cluster.background_job import Job, is_classic
from sparknet.spark.cluster.by_value import MISSING
from sparknet.spark.cluster.session import has_dead_java, is_local
from sparknet.spark.hosts.resources import TaskResources
from sparknet.training.driver.run import FIRST
from sparknet.training.events import Event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_logger = logging.getLogger("sparknet.training")
PATIENCE = 600.0
"""Seconds that the workers may take to start together: as long as Spark itself looks for the slots
of a barrier stage (40 times, 15 s apart)."""
_LOOK = 0.2
_REGISTERED = 5.0
"""Seconds in which a cluster's executors may still register."""
_LEAVES = "spark.sql.leafNodeDefaultParallelism"
_SPLITS = re.compile(r"splits=(\d+)")
"""What Spark's plan says of a range."""
_LOST = re.compile(r"Python worker exited unexpectedly|ExecutorLostFailure.*")
"""Spark's messages about processes that died without a report."""
_SAID = re.compile(r"^(?:: |Caused by: )?[\w.$]+(?:Exception|Error): ([^\n]*)", re.MULTILINE)

Address = tuple[str, int]


def check(
    session: SparkSession,
    workers: int,
    link: Link,
    patience: float | None = PATIENCE,
    needed: int = 0,
    backend: str = EMBEDDED,
    device: str | None = None,
    resources: TaskResources | None = None,
    say: Callable[[Event], None] = lambda event: None,
    together: bool = True,
) -> list[dict[str, Any]]:
    """Return the findings of each worker; SparkError with the setting to change if training
    cannot run.

    ``needed`` is the least memory of a worker in bytes, ``backend`` and ``device`` what it trains
    with, ``resources`` what its task has.  Workers
    may take ``patience`` seconds to start, or any time (None); ``say`` hears of the wait.  Where
    they need not start ``together``, one slot is enough to look.
    """
    if type(workers) is not int or workers < 1:
        raise SparkError(f"workers is {workers!r}: a whole number, at least 1, is needed")
    resources = resources or TaskResources(session)
    start = Start(session, workers if together else 1, patience, say, resources=resources)
    if is_classic(session):
        if together:
            _check_settings(session, workers, start, resources)
        else:
            _warn_of_clear_secrets(session)
            _tell_of_losses(session, workers)
        context = session.sparkContext
        settings = dict(context.getConf().getAll())
        if sentence := containers.too_tight(context.master, settings, needed):
            warnings.warn(sentence, stacklevel=2)
    rows = session.range(0, workers, 1, workers)
    task = partial(probe.look, link=link, backend=backend, device=device, together=together)
    look = resources.mapped(rows, task, probe.SCHEMA, barrier=together)
    if together:
        look = look.repartition(1)  # a barrier stage that feeds no shuffle is not run again
        late = (
            f"{workers} workers did not start together within {patience or 0:g} s "
            "(start_timeout=): ask for fewer (workers=), or give the cluster that many free slots"
        )
    else:
        late = (
            f"Spark ran no task within {patience or 0:g} s (start_timeout=): see what holds its "
            "slots"
        )
    return _looked(session, look, link, start, late, needed)


def _looked(
    session: SparkSession, look: DataFrame, link: Link, start: Start, late: str, needed: int
) -> list[dict[str, Any]]:
    with Job(session, look, "sparknet: preflight") as job:
        while not job.wait(start.pause):
            if start.is_over():
                raise SparkError(late)
        try:
            findings = sorted(
                (json.loads(row.finding) for row in job.result()), key=itemgetter("worker")
            )
        except Exception as error:
            raise translated(error) from error
    for finding in findings:
        _check_finding(finding, link.driver, link.seal)
        if finding["backend"]:
            raise SparkError(f"{_where(finding)} cannot train: {finding['backend']}")
        _check_room(finding, needed)
        if finding["gpus"]:
            _logger.info(f"{_where(finding)} has the GPU {', '.join(finding['gpus'])} of Spark's")
    return findings


class Start:
    """The wait for the workers' start, of which events tell."""

    def __init__(
        self,
        session: SparkSession,
        workers: int,
        patience: float | None,
        say: Callable[[Event], None],
        clock: Callable[[], float] = time.monotonic,
        resources: TaskResources | None = None,
    ) -> None:
        self._resources = resources
        self._session, self._workers = session, workers
        self._patience = inf if patience is None else patience
        self._say, self._clock = say, clock
        self._begun, self._next = clock(), FIRST

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        return max(min(_LOOK, self._begun + self._patience - self._clock()), 0)

    def is_over(self) -> bool:
        """Return whether the workers' time is over; tell of the wait when that is due."""
        seconds = self._clock() - self._begun
        if seconds >= self._patience:
            return True
        if seconds >= self._next:
            self._next = 2 * seconds
            slots = slots_of(self._session, self._resources) if is_classic(self._session) else None
            shared = {"time": time.time(), "seconds": seconds}
            self._say({"event": "waiting", **shared, "slots": slots, "needed": self._workers})
        return False


def _check_settings(
    session: SparkSession, workers: int, start: Start, resources: TaskResources
) -> None:
    context = session.sparkContext
    settings = context.getConf()
    if settings.get("spark.dynamicAllocation.enabled", "false") == "true":
        raise SparkError(
            "spark.dynamicAllocation.enabled is true, and a barrier stage cannot run with it: "
            "set it to false and spark.executor.instances to what the workers need"
        )
    _warn_of_clear_secrets(session)
    slots = _awaited_slots(session, workers, start, resources)
    if slots < workers:
        cpus = settings.get("spark.task.cpus", "1")
        raise SparkError(
            f"{workers} workers need as many slots at once, and there are {slots} "
            f"(spark.master is {context.master}, spark.task.cpus {cpus}): set workers={slots} "
            "or start Spark with more cores"
        )


def check_slots(session: SparkSession, workers: int, more: int = 0) -> None:
    """Raise SparkError if Spark Connect has too few slots for workers and ``more`` other tasks.

    Its client learns of them by the partitions of a range: one for each core, unless set otherwise.
    """
    get, until = session.conf.get, time.monotonic() + _REGISTERED
    is_growing = get("spark.dynamicAllocation.enabled", "false") == "true"
    if is_growing or get("spark.default.parallelism", None) or get(_LEAVES, None):
        return
    cpus, slots = int(get("spark.task.cpus", "1")), 0
    while slots < workers + more:
        if slots and (time.monotonic() > until or get("spark.master", "").startswith("local")):
            others = f" and {more} tasks by which they meet" if more else ""
            raise SparkError(
                f"{workers} workers{others} need {workers + more} slots at once, and there are "
                f"{slots} (spark.task.cpus {cpus}): ask for fewer workers, or give the cluster more"
            )
        with redirect_stdout(StringIO()) as plan:
            session.range(1).explain()
        splits = _SPLITS.search(plan.getvalue())
        if splits is None:
            return
        slots = int(splits[1]) // cpus
        time.sleep(_LOOK if slots < workers + more else 0)


def _warn_of_clear_secrets(session: SparkSession) -> None:
    settings = session.sparkContext.getConf()
    private = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
    authenticated = settings.get("spark.authenticate", "false") == "true"
    encrypted = any(settings.get(name, "false") == "true" for name in private)
    if is_local(session) or (authenticated and encrypted):
        return
    warnings.warn(
        "Spark sends this run's secret to the executors in clear, so that who reads the network "
        "can join the run: set spark.authenticate and spark.network.crypto.enabled to true",
        stacklevel=2,
    )


def _tell_of_losses(session: SparkSession, workers: int) -> None:
    context = session.sparkContext
    settings = dict(context.getConf().getAll())
    sentence, ends = containers.losses_allowed(context.master, settings, workers)
    _logger.info(sentence)
    if ends:
        warnings.warn(sentence, stacklevel=2)


def _awaited_slots(
    session: SparkSession, workers: int, start: Start, resources: TaskResources
) -> int:
    """Return the number of slots, once there are enough: executors take a while to register.

    Those of a local master are there from the beginning.
    """
    local = is_local(session)
    while (slots := slots_of(session, resources)) < workers and not local and not start.is_over():
        time.sleep(start.pause)
    return slots


def slots_of(session: SparkSession, resources: TaskResources | None = None) -> int:
    """Return the number of tasks that can run at once, as Spark counts it for a barrier stage."""
    return (resources or TaskResources(session)).slots()


def _check_finding(finding: dict[str, Any], driver: Address, seal: str) -> None:
    mine = probe.machine()
    where = _where(finding)
    if finding["sparknet"] != mine["sparknet"]:
        raise SparkError(
            f"{where} has sparknet {finding['sparknet']}, the driver {mine['sparknet']}: "
            "install the same on both"
        )
    if seal in (GMAC, AES_GCM) and finding["seal"] == HMAC:
        raise SparkError(
            f"{where} has no package 'cryptography', with which the driver protects what travels: "
            "install the same on both"
        )
    for host, port in finding["unreached"]:
        if (host, port) == driver:
            raise SparkError(
                f"{where} cannot reach the driver at {host}:{port}: set spark.driver.host to an "
                "address that executors reach, and open the port"
            )
        raise SparkError(
            f"{where} cannot reach a worker at {host}:{port}: the executors must accept "
            "connections from each other; open a port range and name it with ports="
        )


def _check_room(finding: dict[str, Any], needed: int) -> None:
    """SparkError if Spark's memory limit is too small; mapped files and stacks count as well."""
    if finding["room"] is None:
        return
    limit, free = finding["room"]
    if free < needed:
        raise SparkError(
            f"{_where(finding)} has {_mebibytes(free)} left of the {_mebibytes(limit)} that "
            f"spark.executor.pyspark.memory allows it, and training takes {_mebibytes(needed)} "
            "at the least, and the records: give that setting more, or leave it out"
        )


def _where(finding: dict[str, Any]) -> str:
    return f"worker {finding['worker']} on {finding['host']}"


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def translated(error: Exception) -> SparkError:
    """Return a job's failure as a SparkError of one sentence."""
    text = str(error)
    if has_dead_java():
        return SparkError(
            "the Java of Spark's driver has ended (killed, or out of memory): start another by "
            "local_session(memory=…) or get_session(), and make the data again"
        )
    if "No module named 'sparknet" in text:
        return SparkError(MISSING)
    if "PYTHON_VERSION_MISMATCH" in text or "different minor version" in text:
        return SparkError(
            "the executors run another version of Python than the driver: "
            "set PYSPARK_PYTHON to the same one on both"
        )
    if "Barrier" in text and "dynamic resource allocation" in text:
        return SparkError("set spark.dynamicAllocation.enabled to false: workers start together")
    if "OversizedAllocationException" in text:
        return SparkError(
            "an Arrow batch of the rows is over 2 GiB: set "
            "spark.sql.execution.arrow.maxRecordsPerBatch to fewer rows"
        )
    if match := _LOST.search(text):
        return SparkError(f"{tried(error)}; Spark says: {match[0].strip()}")
    message = _essence(text) or type(error).__name__
    own = re.match(r"sparknet\.errors\.\w+: ", message)
    return SparkError(message[own.end() :] if own else f"the Spark job failed: {message}")


def _essence(text: str) -> str:
    """Return the last line of Python's traceback, or the first exception's message."""
    _, python, after = text.rpartition("Traceback (most recent call last):")
    if python:
        ends = (line for line in after.splitlines() if line and not line[0].isspace())
        return next(ends, "")
    messages = (match[1].strip() for match in _SAID.finditer(text))
    return next((line for line in messages if line), text.strip().partition("\n")[0])


def tried(error: Exception) -> str:
    """Part of a message: how often Spark ran the stage before it gave up."""
    times = re.search(r"maximum allowable number of times: (\d+)", str(error))
    if times is None:
        return "the Spark job failed, and Spark does not run it again"
    return f"the Spark job failed {times[1]} times in a row (spark.stage.maxConsecutiveAttempts)"
