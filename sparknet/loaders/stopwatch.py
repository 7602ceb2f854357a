"""Stopwatch: seconds and bytes of the phases of a prediction's task, from all of its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

_running: Stopwatch | None = None


class Stopwatch:
    """Adds up seconds and bytes by phase."""

    def __init__(self) -> None:
        self.phases: dict[str, tuple[float, int]] = {}
        self._lock = threading.Lock()

    def add(self, phase: str, seconds: float, size: int = 0) -> None:
        with self._lock:
            before = self.phases.get(phase, (0.0, 0))
            self.phases[phase] = before[0] + seconds, before[1] + size

    @contextmanager
    def run(self) -> Iterator[None]:
        """Let `timed` of this process, where one task runs at a time, add to this stopwatch."""
        global _running
        _running = self
        try:
            yield
        finally:
            _running = None


@contextmanager
def timed(phase: str, size: int = 0) -> Iterator[None]:
    """Add the seconds of a block and its bytes to the stopwatch that runs, if one does."""
    watch = _running
    if watch is None:
        yield
        return
    begin = time.perf_counter()
    try:
        yield
    finally:
        watch.add(phase, time.perf_counter() - begin, size)


def timed_items(
    phase: str, items: Iterable[T], size: Callable[[T], int] = lambda _: 0
) -> Iterator[T]:
    """Yield the items; the seconds for which each was waited for are the phase's."""
    watch, iterator = _running, iter(items)
    if watch is None:
        yield from iterator
        return
    while True:
        begin = time.perf_counter()
        try:
            item = next(iterator)
        except StopIteration:
            return
        watch.add(phase, time.perf_counter() - begin, size(item))
        yield item
