"""Leaving: which executors Spark is about to take away, as it tells nothing to their tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sparknet.spark.cluster.background_job import Job, is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Leaving:
    """Asks the driver's JVM; under Spark Connect nobody can be asked, and nothing is found.

    Its classes are Spark's own and may change: what they no longer have is not found either.
    """

    def __init__(self, session: SparkSession) -> None:
        self._scala: Any = session.sparkContext._jsc.sc() if is_classic(session) else None

    def ranks(self, jobs: Mapping[int, Job]) -> set[int]:
        """The keys of the jobs whose task runs on an executor that is being decommissioned."""
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
        """The executors that run the tasks of a job."""
        store, found = self._scala.statusStore(), []
        for number in self._scala.statusTracker().getJobIdsForGroup(job.tag):
            stages = store.job(number).stageIds()
            for at in range(stages.length()):
                attempt = self._scala.statusTracker().getStageInfo(stages.apply(at))
                if attempt.isEmpty() or not attempt.get().numActiveTasks():
                    continue
                tasks = store.taskList(stages.apply(at), attempt.get().currentAttemptId(), 8)
                listed = [tasks.apply(place) for place in range(tasks.length())]
                found += [task.executorId() for task in listed if task.status() == "RUNNING"]
        return found
