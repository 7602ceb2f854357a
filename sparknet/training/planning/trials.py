"""Trials: how many iterations a strategy needs for an accuracy, by virtual training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any

from sparknet.errors import ListenerError
from sparknet.training.events import Event
from sparknet.training.strategies import Strategy
from sparknet.training.virtual import Cluster, simulate

_CHECKS = 10
"""Iterations between two validations, or one round where that is longer."""
_MOST = 20000
"""Iterations after which a trial ends in any case."""


@dataclass(frozen=True)
class Trial:
    """A virtual training up to an accuracy."""

    strategy: Strategy
    workers: int
    reached: bool
    iterations: int
    """M_a · τ: those of each worker."""
    seconds: float
    """Simulated."""
    accuracy: float


class _Enough(Exception):
    """Ends a trial from its listener."""


class _Watch:
    """Ends a trial when the accuracy is reached, or when going on is of no use."""

    def __init__(self, metric: str, accuracy: float, slower_than: float, until: float) -> None:
        self._metric, self._accuracy = metric, accuracy
        self._slower_than, self._until = slower_than, until
        self._start = 0.0
        self.value, self.iterations, self.seconds, self.reached = 0.0, 0, 0.0, False

    def __call__(self, event: Event) -> None:
        if event["event"] == "start":
            self._start = event["time"]
        if event["event"] in ("round", "validation"):
            self.iterations, self.seconds = event["iteration"], event["time"] - self._start
        if event["event"] == "validation":
            self.value = float(event["metrics"][self._metric])
            self.reached = self.value >= self._accuracy
            if self.reached:
                raise _Enough
        if self.seconds > self._slower_than or monotonic() > self._until:
            raise _Enough


def trial(
    solver: Any,
    data: Any,
    validation: Any,
    strategy: Strategy,
    workers: int,
    cluster: Cluster,
    accuracy: float,
    *,
    metric: str = "accuracy",
    slower_than: float = inf,
    until: float = inf,
    **settings: Any,
) -> Trial:
    """Train virtually until ``metric`` reaches ``accuracy``.

    It ends early when it has taken more simulated seconds than ``slower_than``, or at the time
    ``until`` of the monotonic clock.
    """
    watch = _Watch(metric, accuracy, slower_than, until)
    length = _round_of(strategy)
    try:
        simulate(
            solver,
            data,
            workers=workers,
            cluster=cluster,
            strategy=strategy,
            validation=validation,
            validate_every=max(1, _CHECKS // length),
            steps=_MOST,
            on_event=watch,
            **settings,
        )
    except ListenerError as error:
        if not isinstance(error.__cause__, _Enough):
            raise
    return Trial(strategy, workers, watch.reached, watch.iterations, watch.seconds, watch.value)


def _round_of(strategy: Strategy) -> int:
    """The iterations of a round."""
    for name in ("steps", "check_every", "every"):
        if getattr(strategy, name, None):
            return int(getattr(strategy, name))
    return 1


def compared(
    solver: Any,
    data: Any,
    validation: Any,
    candidates: Sequence[tuple[Strategy, int, Cluster]],
    accuracy: float,
    seconds: float,
    **settings: Any,
) -> Iterator[Trial]:
    """Try candidates, the most promising first, for so many real seconds in all.

    A candidate is given up when it has taken longer than the best so far.
    """
    best, until = inf, monotonic() + seconds
    for number, (strategy, workers, cluster) in enumerate(candidates):
        if monotonic() > until:
            return
        given = {"slower_than": best, "until": until, **settings}
        one = trial(solver, data, validation, strategy, workers, cluster, accuracy, **given)
        best = min(best, one.seconds) if one.reached else best
        if one.reached or number == 0 or one.seconds > best:
            yield one
