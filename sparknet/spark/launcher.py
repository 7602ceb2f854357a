"""SparkWorkers: runs workers as tasks of a barrier stage, which Spark restarts after a loss."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from sparknet.errors import DataError, SparkError
from sparknet.spark import task
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.background_job import Job, is_classic
from sparknet.spark.filesystem import scratch
from sparknet.spark.resources import TaskResources
from sparknet.spark.task import Columns
from sparknet.training.failure import Failure
from sparknet.training.run import Run, Workers
from sparknet.training.run_spec import RunSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIDYING = 10.0
"""Seconds that the executors may take to remove the folders of killed processes."""


class SparkWorkers(Workers):
    """One task for each partition of the rows.

    The stage feeds a shuffle, so that Spark runs it again when a worker is lost, and the workers
    continue from the newest snapshot (docs/decisions/0009).
    """

    restarts = True
    some_ended = False

    def __init__(
        self,
        session: SparkSession,
        rows: DataFrame,
        size: int,
        run: Run,
        spec: RunSpec,
        columns: Columns,
        name: str,
        resources: TaskResources,
    ) -> None:
        self._session, self._size, self._run, self._spec = session, size, run, spec
        self._resources = resources
        body = partial(task.train, spec=spec, columns=columns)
        frame = resources.mapped(rows, body, task.SCHEMA, barrier=True).repartition(1)
        self._job = Job(session, frame, name)

    def __enter__(self) -> SparkWorkers:
        self._job.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        clean = self._job.ended and not self._run.driver.progress.failures
        self._job.__exit__()
        if not clean:
            self._tidy()

    def wait(self, seconds: float) -> bool:
        return self._job.wait(seconds)

    def slots(self) -> tuple[int | None, int]:
        there = self._resources.slots() if is_classic(self._session) else None
        return there, self._size

    def failure(self, said: Sequence[Failure]) -> Exception:
        try:
            self._job.result()
        except Exception as error:
            reason = preflight.translated(error)
            if said:
                reason = SparkError(f"{preflight.tried(error)}; the last words: {said[-1].error}")
            reason.__cause__ = error
            return reason
        if not self._run.driver.progress.starts:  # Spark skips a stage on an empty relation
            return DataError("the training data has no records")
        return SparkError("the job ended, but no worker sent its weights")

    def _tidy(self) -> None:
        """Remove the folders that killed processes left on the executors."""
        rows = self._session.range(0, self._size, 1, self._size)
        sweep = partial(scratch.sweep, run=self._spec.link.run)
        frame = self._resources.mapped(rows, sweep, scratch.SCHEMA, barrier=True)
        with suppress(Exception), Job(self._session, frame, "sparknet: tidying up") as job:
            job.wait(_TIDYING)
