"""Timer: pycaffe's stop watch (Caffe: util/benchmark.cpp, CPUTimer)."""

from __future__ import annotations

import time


class Timer:
    def __init__(self) -> None:
        self._begin: float | None = None
        self._seconds = 0.0

    def start(self) -> None:
        """Start, unless it runs already."""
        if self._begin is None:
            self._begin = time.perf_counter()

    def stop(self) -> None:
        if self._begin is not None:
            self._seconds, self._begin = time.perf_counter() - self._begin, None

    @property
    def ms(self) -> float:
        """Milliseconds of the last run; a running timer stops."""
        self.stop()
        return 1000 * self._seconds
