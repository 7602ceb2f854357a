"""Profiles of predictions: tasks send theirs to the driver by an accumulator of Spark."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sparknet.errors import SparkError
from sparknet.loaders.stopwatch import Stopwatch
from sparknet.predict.profile import Profile, TaskProfile
from sparknet.spark.cluster.background_job import is_classic
from sparknet.training.progress import clock_time

Tasks = dict[tuple[int, int], TaskProfile]

_LINE_SECONDS = 10.0
"""Between two lines of a prediction that runs."""


class TasksProgress:
    """Tasks' profiles as an AccumulatorParam of PySpark.

    On the driver they go to a `Profile`, and lines say how many rows a prediction has done, how
    fast, and what is left.
    """

    def __init__(self, profile: Profile, context: Any) -> None:
        self._profile, self._context = profile, context
        self._begin = self._next = time.monotonic()
        self._next += _LINE_SECONDS

    def __getstate__(self) -> dict[str, Any]:
        return {"_context": None}

    def zero(self, value: Tasks) -> Tasks:
        return {}

    def addInPlace(self, value1: Tasks, value2: Tasks) -> Tasks:  # noqa: N802 - PySpark's name
        value1 |= value2
        if self._context is not None and value2:
            self._add(value2)
        return value1

    def _add(self, tasks: Tasks) -> None:
        self._profile.tasks |= tasks
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _LINE_SECONDS
        (stage, _), *_ = tasks
        print(f"sparknet: {self.line(stage, now - self._begin)}", file=sys.stderr, flush=True)

    def line(self, stage: int, seconds: float) -> str:
        rows = self._profile.rows
        line = f"{rows:,} rows, {rows / seconds:,.0f} a second"
        info = self._context.statusTracker().getStageInfo(stage)
        if info is None or not info.numCompletedTasks:
            return line
        done, count = info.numCompletedTasks, info.numTasks
        rest = seconds * (count - done) / done
        return f"{line}; {done} of {count} tasks done, about {clock_time(rest)} left"


def task_accumulator(session: Any, profile: Profile) -> Any:
    """Return the accumulator by which tasks send their profiles."""
    if not is_classic(session):
        raise SparkError("profile=True needs a classic session: Spark Connect has no accumulators")
    context = session.sparkContext
    return context.accumulator({}, TasksProgress(profile, context))


@contextmanager
def profiled(tasks: Any, context: Any) -> Iterator[list[int]]:
    """Measure a task, if there is an accumulator; the caller appends the rows that it has done."""
    rows: list[int] = []
    if tasks is None or context is None:
        yield rows
        return
    watch, begin = Stopwatch(), time.perf_counter()
    try:
        with watch.run():
            yield rows
    finally:
        key = context.stageId(), context.partitionId()
        seconds = time.perf_counter() - begin
        tasks.add({key: TaskProfile(*key, sum(rows), seconds, watch.phases)})
