"""How long the layers that live in Python take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter_ns

FORWARD, BACKWARD = 0, 1


class HostClocks:
    """Nanoseconds by layer number, forward and backward.  They stand still at first."""

    def __init__(self) -> None:
        self._spent: tuple[dict[int, float], dict[int, float]] | None = None

    def run(self, on: bool) -> None:
        """Start all clocks from 0, or stop them."""
        self._spent = ({}, {}) if on else None

    def put_into(self, passes: tuple[list[float], list[float]]) -> None:
        """Write the times into lists of one number a layer."""
        for times, spent in zip(passes, self._spent or ({}, {}), strict=True):
            for number, nanoseconds in spent.items():
                times[number] = nanoseconds

    @contextmanager
    def timed(self, which: int, number: int) -> Iterator[None]:
        """Time a layer's pass, if the clocks run."""
        if self._spent is None:
            yield
            return
        start = perf_counter_ns()
        yield
        spent = self._spent[which]
        spent[number] = spent.get(number, 0.0) + perf_counter_ns() - start
