"""BarrierWorkers: runs workers as tasks of a barrier stage, which Spark restarts after a loss."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sparknet.errors import DataError, SparkError
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.background_job import Job
from sparknet.spark.hosts import task
from sparknet.spark.hosts.jobs import WorkerTasks
from sparknet.training.driver.failure import Failure
from sparknet.training.driver.run import Workers


class BarrierWorkers(Workers):
    """One task for each partition of the rows.

    The stage feeds a shuffle, so that Spark runs it again when a worker is lost, and the workers
    continue from the newest snapshot (docs/decisions/0009).
    """

    restarts = True
    some_ended = False

    def __init__(self, tasks: WorkerTasks) -> None:
        self._tasks = tasks
        body = partial(task.train, spec=tasks.spec, columns=tasks.columns)
        frame = tasks.resources.mapped(tasks.rows, body, task.SCHEMA, barrier=True).repartition(1)
        self._job = Job(tasks.session, frame, tasks.name)

    def __enter__(self) -> BarrierWorkers:
        self._job.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        clean = self._job.ended and not self._tasks.run.driver.progress.failures
        self._job.__exit__()
        if not clean:
            self._tasks.tidy(barrier=True)

    def wait(self, seconds: float) -> bool:
        return self._job.wait(seconds)

    def slots(self) -> tuple[int | None, int]:
        return self._tasks.slots(), self._tasks.given.workers

    def failure(self, said: Sequence[Failure]) -> Exception:
        try:
            self._job.result()
        except Exception as error:
            reason = preflight.translated(error)
            if said:
                reason = SparkError(f"{preflight.tried(error)}; the last words: {said[-1].error}")
            reason.__cause__ = error
            return reason
        if not self._tasks.run.driver.progress.starts:  # Spark skips a stage on an empty relation
            return DataError("the training data has no records")
        return SparkError("the job ended, but no worker sent its weights")
