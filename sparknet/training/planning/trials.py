"""Trials: how many iterations a strategy needs for an accuracy, by virtual training over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from time import monotonic
from typing import Any

from sparknet.caffe.solvers.settings import settings
from sparknet.errors import ListenerError
from sparknet.net import Net
from sparknet.training.events import Event
from sparknet.training.planning.spread import Spread
from sparknet.training.strategies import Strategy
from sparknet.training.virtual import Cluster, simulate

_CHECKS = 10
"""Iterations between two validations, or one round where that is longer."""
_MOST = 20000
"""Iterations after which a trial ends in any case."""


_SLACK = 1.5
"""A candidate is given up when it has taken so many times as long as the best so far."""


@dataclass(frozen=True)
class Trial:
    """Virtual trainings up to an accuracy, one for each seed; numbers are means over them."""

    strategy: Strategy
    workers: int
    reached: bool
    """By each of them."""
    iterations: float
    """M_a · τ: those of each worker."""
    seconds: float
    """Simulated."""
    accuracy: float
    seeds: int = 1
    iterations_error: float = nan
    """The standard error of the mean."""
    seconds_error: float = nan
    by_seed: Mapping[int, float] = field(default_factory=dict)
    """The seconds."""

    @classmethod
    def joined(cls, runs: Mapping[int, Trial]) -> Trial:
        """Trials of one candidate, by seed."""
        first = next(iter(runs.values()))
        iterations, seconds, accuracy = (
            Spread.of(getattr(one, name) for one in runs.values())
            for name in ("iterations", "seconds", "accuracy")
        )
        return cls(
            strategy=first.strategy,
            workers=first.workers,
            reached=all(one.reached for one in runs.values()),
            iterations=iterations.mean,
            seconds=seconds.mean,
            accuracy=accuracy.mean,
            seeds=len(runs),
            iterations_error=iterations.error,
            seconds_error=seconds.error,
            by_seed={seed: one.seconds for seed, one in runs.items()},
        )


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
    **given: Any,
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
            **given,
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
    seeds: int = 1,
    **given: Any,
) -> list[Trial]:
    """Try candidates, the most promising first, for so many real seconds in all.

    A candidate is given up when it has taken much longer than the best so far.  Those that reach
    the accuracy are tried with further seeds, which the candidates share.
    """
    until, found = monotonic() + seconds, dict[int, dict[int, Trial]]()
    for seed in range(seeds):
        best = inf
        for number, (strategy, workers, cluster) in enumerate(candidates):
            if seed and not (number in found and found[number][0].reached):
                continue
            if monotonic() > until:
                break
            limits: dict[str, Any] = {"slower_than": _SLACK * best, "until": until, "seed": seed}
            with_seed = _reseeded(solver, seed)
            one = trial(
                with_seed, data, validation, strategy, workers, cluster, accuracy, **limits, **given
            )
            best = min(best, one.seconds) if one.reached else best
            if one.reached or (number == 0 and not seed) or one.seconds > _SLACK * best:
                found.setdefault(number, {})[seed] = one
    return [Trial.joined(runs) for runs in found.values()]


def _reseeded(solver: Any, seed: int) -> Any:
    """A solver that begins with other weights, where it names a seed; a net keeps its weights."""
    if solver is None or isinstance(solver, Net) or not seed:
        return solver
    other = settings(solver)
    if other.random_seed >= 0:
        other.random_seed += seed
    return other
