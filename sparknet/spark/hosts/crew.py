"""The crew of a run on Spark: jobs of one task each, or one barrier stage.

A barrier stage needs all its slots, fails as a whole (SPARK-24942) and is run again by Spark.
Where hosts change, each is a job of one task, which waits in Spark's queue until there is a slot:
so the run begins with those that came, and a machine that comes later takes a free slot.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

from sparknet.errors import PeerLost, SparkError
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.background_job import Job, is_classic
from sparknet.spark.cluster.session import is_local
from sparknet.spark.filesystem import scratch
from sparknet.spark.hosts import task
from sparknet.spark.hosts.remote_driver import RemoteDriver
from sparknet.spark.hosts.resources import TaskResources
from sparknet.spark.hosts.task import Columns
from sparknet.training.driver.crew import SOON, Crew, WorkerHost
from sparknet.training.driver.failure import Failure
from sparknet.training.driver.membership import Membership
from sparknet.training.driver.run import Run
from sparknet.training.settings.training import RunSettings
from sparknet.training.workers.run_spec import RunSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIDYING = 10.0
"""Seconds that the executors may take to remove the folders of killed processes."""
_END = 30.0
"""Seconds that a cancelled job may take to end."""
_PAUSE = 1.0, 5.0
"""Seconds for which slots are left to others, at random."""
_LOOK = 1.0
"""Seconds between two looks at what Spark does with executors."""
_LOST = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|"
    r"sparknet\.errors\.(?:CommError|PeerLost|OutOfMemory)|cancelled"
)
"""What is said of a task that was lost, not wrong."""


@dataclass(frozen=True)
class WorkerTasks:
    """What all hosts of a run have in common."""

    session: SparkSession
    rows: DataFrame
    given: RunSettings
    spec: RunSpec
    columns: Columns
    name: str
    timeout: float | None
    """Seconds within which enough hosts must have started; None is no limit."""
    resources: TaskResources

    def host(self, number: int, when_ended: Callable[[], None]) -> JobHost:
        """Return the job of one host; of all workers, in a run whose hosts stay."""
        size, spec, columns = self.given.workers, self.spec, self.columns
        if spec.is_elastic:
            body = partial(task.run_host, spec=spec, columns=columns, number=number)
            frame = self.resources.mapped(self.rows.coalesce(1), body, task.SCHEMA)
            job = Job(self.session, frame, f"{self.name}, host {number}", when_ended)
            return JobHost(job, [number], is_elastic=True)
        whole = partial(task.train, spec=spec, columns=columns)
        # The stage feeds a shuffle: so Spark runs it again when a worker is lost, and the workers
        # continue from the newest snapshot (docs/decisions/0009).
        frame = self.resources.mapped(self.rows, whole, task.SCHEMA, barrier=True).repartition(1)
        return JobHost(Job(self.session, frame, self.name, when_ended), range(size))

    def tidy(self) -> None:
        """Remove the folders that killed processes left on the executors."""
        size, barrier = self.hosts, not self.spec.is_elastic
        rows = self.session.range(0, size, 1, size)
        sweep = partial(scratch.sweep, run=self.spec.link.run)
        frame = self.resources.mapped(rows, sweep, scratch.SCHEMA, barrier=barrier)
        with suppress(Exception), Job(self.session, frame, "sparknet: tidying up") as job:
            job.wait(_TIDYING)

    def slots(self) -> int | None:
        return self.resources.slots() if is_classic(self.session) else None

    @property
    def hosts(self) -> int:
        """The tasks of the run."""
        return self.given.hosts or self.given.workers

    @property
    def least(self) -> int:
        return self.given.min_hosts or self.hosts

    @property
    def patience(self) -> float:
        """Seconds that enough hosts may take to start."""
        return inf if self.timeout is None else self.timeout

    def too_few(self, slots: int | None) -> SparkError:
        there = "" if slots is None else f", and there were {slots}"
        return SparkError(
            f"at least {self.least} workers need as many slots at once{there} (they may "
            f"take {self.patience:g} s, start_timeout=): ask for fewer (min_hosts=), or give the "
            "cluster more free slots"
        )

    def check(self) -> None:
        """SparkError if a local master will never have the slots."""
        slots = self.slots()
        if is_classic(self.session) and is_local(self.session) and (slots or 0) < self.least:
            raise self.too_few(slots)


class JobHost(WorkerHost):
    """A job of Spark; Spark starts its tasks again after a loss."""

    restarts = True

    def __init__(self, job: Job, ranks: Sequence[int], is_elastic: bool = False) -> None:
        self.job, self.ranks, self._is_elastic = job, ranks, is_elastic

    def start(self) -> None:
        self.job.__enter__()

    @property
    def has_ended(self) -> bool:
        return self.job.ended

    def cancel(self) -> None:
        if not self.has_ended:
            self.job.cancel()

    def close(self) -> None:
        self.job.wait(_END)

    def failure(self, reports: Sequence[Failure]) -> Exception | None:
        try:
            self.job.result()
        except Exception as error:
            cause: Exception = preflight.translated(error)
            if reports:
                last = reports[-1].error
                cause = SparkError(f"{preflight.tried(error)}; the last words: {last}")
            elif self._is_elastic and _LOST.search(str(error)):
                words = str(cause).rpartition("; Spark says: ")[2]
                cause = PeerLost(self.ranks[0], "its executor", words)
            cause.__cause__ = error
            return cause
        return None


class SparkCrew(Crew):
    """A crew whose hosts need slots, which other runs may want, too."""

    def __init__(self, run: Run, tasks: WorkerTasks) -> None:
        hosts = tasks.hosts if tasks.spec.is_elastic else 1
        super().__init__(
            run.driver, run.history, tasks.host, hosts, tasks.least, foreign=SparkError
        )
        self._tasks, self._leaving = tasks, Leaving(tasks.session)
        self._held = tasks.given.start_wait + SOON
        """Seconds for which too few hosts hold their slots, before the run begins."""
        self._back = time.monotonic() + self._held
        self._looked = 0.0

    def wait(self, seconds: float) -> bool:
        ended = super().wait(seconds)
        if ended:
            self._catch_up()
        return ended

    def keep_up(self, members: Membership) -> bool:
        if self.some_ended:
            self._catch_up()
        return super().keep_up(members)

    def _catch_up(self) -> None:
        """Hear the last words of workers that have ended."""
        if isinstance(self.driver, RemoteDriver):
            self.driver.catch_up()

    def slots(self) -> tuple[int | None, int]:
        return self._tasks.slots(), self.least

    def look(self, members: Membership, now: float) -> None:
        """Raise an error if there are too few hosts for too long.

        A run that has not begun leaves its slots to others for a moment: two of them might hold
        half of the slots each.
        """
        self.check_progress()
        driver = self.driver
        present = driver.present
        if now >= self._looked + _LOOK:
            self._looked = now
            jobs = {one.ranks[0]: one.job for one in self.hosts if isinstance(one, JobHost)}
            members.send_away(self._leaving.hosts(jobs))
        if present >= self.least:
            self.enough = now
            self._back = now + self._held
        elif now - self.enough > self._tasks.patience:
            raise self._tasks.too_few(present)
        elif not driver.progress.starts and present and now > self._back:
            self._held *= 2
            pause = random.uniform(*_PAUSE)
            self._back = now + pause + self._held
            for place in self.places:
                if place.host is not None:
                    place.leave(now)
                place.again = now + pause


class Leaving:
    """Asks the driver's JVM; under Spark Connect nobody can be asked, and nothing is found.

    Its classes are Spark's own and may change: what they no longer have is not found either.
    """

    def __init__(self, session: SparkSession) -> None:
        self._scala: Any = session.sparkContext._jsc.sc() if is_classic(session) else None

    def hosts(self, jobs: Mapping[int, Job]) -> set[int]:
        """Return the keys of the jobs whose task runs on an executor being decommissioned."""
        if self._scala is None:
            return set()
        from py4j.protocol import Py4JError

        try:
            return {rank for rank, job in jobs.items() if any(map(self._leaves, self._of(job)))}
        except Py4JError:
            self._scala = None
            return set()

    def _leaves(self, executor: str) -> bool:
        return bool(self._scala.taskScheduler().getExecutorDecommissionState(executor).isDefined())

    def _of(self, job: Job) -> list[str]:
        """Return the executors that run the tasks of a job."""
        store, executors = self._scala.statusStore(), []
        for number in self._scala.statusTracker().getJobIdsForGroup(job.tag):
            stages = store.job(number).stageIds()
            for at in range(stages.length()):
                attempt = self._scala.statusTracker().getStageInfo(stages.apply(at))
                if attempt.isEmpty() or not attempt.get().numActiveTasks():
                    continue
                tasks = store.taskList(stages.apply(at), attempt.get().currentAttemptId(), 8)
                listed = [tasks.apply(place) for place in range(tasks.length())]
                executors += [task.executorId() for task in listed if task.status() == "RUNNING"]
        return executors


@contextmanager
def stored(session: SparkSession, rows: DataFrame) -> Iterator[DataFrame]:
    """Rows on the executors' disks, from which all workers read them.

    What is lost with a machine Spark computes again.
    """
    from pyspark import StorageLevel

    frame = rows.persist(StorageLevel.DISK_ONLY)
    try:
        with Job(session, frame.groupBy().count(), "sparknet: storing the records") as job:
            try:
                job.result()
            except Exception as error:
                raise preflight.translated(error) from error
        yield frame
    finally:
        with suppress(Exception):  # the session may have been stopped
            frame.unpersist()
