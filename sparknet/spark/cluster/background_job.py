"""Job: a Spark job in a thread of its own, with a name and a tag."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_classic(session: SparkSession) -> bool:
    """Return whether a session has a SparkContext; one of Spark Connect has none."""
    return hasattr(session, "_jsparkSession")


class Job:
    """Collects a DataFrame in a thread; leaving the ``with`` cancels it if it still runs.

    A cancelled job interrupts no thread of Spark's: one that waits for a new Python process takes
    the interruption for a timeout, and ends every Python process of the executor.
    """

    def __init__(
        self,
        session: SparkSession,
        frame: DataFrame,
        name: str,
        when_ended: Callable[[], None] = lambda: None,
        on_row: Callable[[Any], None] | None = None,
    ) -> None:
        """``on_row`` takes each row as it comes, where Spark Connect streams them."""
        self._session, self._frame, self._name = session, frame, name
        self._tag = f"sparknet-{uuid.uuid4().hex}"
        self._rows: list[Any] = []
        self._error: Exception | None = None
        # The thread is not joined: an interrupted join marks it as ended (CPython 45274).
        self._done = threading.Event()
        self._when_ended, self._on_row = when_ended, on_row
        self._pool = _pool(session)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Job:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.ended:
            self.cancel()
            self._done.wait(_END)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the job; returns whether it ended within ``timeout`` seconds."""
        return self._done.wait(timeout)

    @property
    def ended(self) -> bool:
        return self._done.is_set()

    def result(self) -> list[Any]:
        """Return the job's rows; raises its error."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._rows

    @property
    def tag(self) -> str:
        """Its job group, or its tag under Spark Connect."""
        return self._tag

    def cancel(self) -> None:
        if is_classic(self._session):
            self._session.sparkContext.cancelJobGroup(self._tag)
        else:
            self._session.interruptTag(self._tag)

    def _run(self) -> None:
        try:
            if is_classic(self._session):
                context = self._session.sparkContext
                context.setJobGroup(self._tag, self._name, interruptOnCancel=False)
                context.setLocalProperty(_POOL, self._pool)
            else:
                self._session.addTag(self._tag)
            if self._on_row is None:
                self._rows = self._frame.collect()
            else:
                for row in self._frame.toLocalIterator():
                    self._on_row(row)
        except Exception as error:  # raised by result()
            self._error = error
        finally:
            self._done.set()
            self._when_ended()


def _pool(session: SparkSession) -> Any:
    """Return the fair scheduler's pool of the calling thread; a new thread would have none."""
    return session.sparkContext.getLocalProperty(_POOL) if is_classic(session) else None


_POOL = "spark.scheduler.pool"
_END = 30.0
"""Seconds that a cancelled job may take to end."""
