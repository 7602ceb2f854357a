"""Meter: the progress of training, computed from its events."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sparknet.summary.events import Event, number

RECENT = 20
"""Rounds over which the speed is measured."""


class Meter:
    """The state that a progress bar shows; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._first = 0.0
        self._goal: tuple[str, float] | None = None
        self._position = 0.0
        self._recent: deque[tuple[float, float]] = deque([(self._began, 0.0)], RECENT + 1)
        self._computing = self._communicating = 0.0
        self.iteration = 0
        self.loss: float | None = None
        self.metrics: dict[str, float] = {}

    def add(self, event: Event) -> None:
        """Update the state by an event."""
        self.iteration = int(event.get("iteration") or self.iteration)
        if event["event"] == "start":
            self._start(event)
        elif event["event"] == "round":
            self._round(event)
        elif event["event"] == "validation":
            self.metrics = {name: float(value) for name, value in event["metrics"].items()}

    def _start(self, event: Event) -> None:
        goals = ((name, number(event, name)) for name in ("steps", "seconds"))
        self._goal = next(((name, value) for name, value in goals if value), None)
        self._began = self._clock()
        self._recent.clear()
        self._recent.append((self._began, 0.0))
        self._first = self._position = self._measure(event)

    def _round(self, event: Event) -> None:
        self._recent.append((self._clock(), self._recent[-1][1] + (event.get("samples") or 0)))
        self._computing += event.get("seconds_computing") or 0.0
        self._communicating += event.get("seconds_communicating") or 0.0
        self.loss = number(event, "loss")
        self._position = self._measure(event)

    def _measure(self, event: Event) -> float:
        """The progress, in the unit of the goal."""
        if self._goal and self._goal[0] == "seconds":
            return self._clock() - self._began
        return number(event, "iteration") or 0.0

    @property
    def goal(self) -> tuple[str, float] | None:
        """The measure that ends the training, and its value at the end."""
        return self._goal

    @property
    def fraction(self) -> float | None:
        """The finished share, 0 to 1; None if no end is set."""
        return min(self._position / self._goal[1], 1.0) if self._goal else None

    @property
    def remaining(self) -> float | None:
        """The estimated seconds left."""
        if self._goal is None or self._position <= self._first:
            return None
        pace = (self._recent[-1][0] - self._began) / (self._position - self._first)
        return max(self._goal[1] - self._position, 0.0) * pace

    @property
    def samples_per_second(self) -> float | None:
        (began, before), (now, after) = self._recent[0], self._recent[-1]
        return (after - before) / (now - began) if now > began else None

    @property
    def share_communicating(self) -> float | None:
        total = self._computing + self._communicating
        return self._communicating / total if total else None
