"""Trials: how many iterations a strategy needs for an accuracy, by virtual training over seeds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, nan, sqrt
from time import monotonic
from typing import Any, TypeVar

from sparknet.caffe.solvers.nets import settings
from sparknet.errors import ListenerError
from sparknet.net import Net
from sparknet.training.events import Event
from sparknet.training.strategies import Strategy
from sparknet.training.virtual import Cluster, simulate

Seed = TypeVar("Seed", bound=Hashable)

_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160),
    *(2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056),
    *(2.052, 2.048, 2.045, 2.042),
)
"""Student's t that 5 % exceed on both sides, for 1, 2, … degrees of freedom."""
_LIMIT = 1.96
"""The same for any number of them."""


@dataclass(frozen=True)
class Spread:
    """The mean of some values, and its standard error; nan for one value."""

    mean: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        numbers = list(values)
        count = len(numbers)
        if not count:
            return cls(nan, nan, 0)
        mean = sum(numbers) / count
        if count == 1 or not isfinite(mean):
            return cls(mean, nan, count)
        return cls(
            mean, sqrt(sum((one - mean) ** 2 for one in numbers) / (count - 1) / count), count
        )

    def text(self, scale: float = 1.0, digits: int | None = None, unit: str = "") -> str:
        """Such as 97.31 ± 0.12 %; to two digits of the error unless ``digits`` are given."""
        mean, error = scale * self.mean, scale * self.error
        if digits is None:
            digits = _digits(error if isfinite(error) and error else mean / 100)
        text = f"{mean:,.{digits}f}"
        return (f"{text} ± {error:.{digits}f}" if isfinite(error) else text) + unit

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Difference:
    """How much larger the values of a second set are."""

    spread: Spread
    freedom: float
    """Degrees of freedom."""
    paired: bool
    """Whether each run is compared with that of the same seed."""

    @property
    def is_significant(self) -> bool | None:
        """Whether it is not 0, with 95 % confidence; None where too few runs say nothing."""
        error = self.spread.error
        if not isfinite(error) or self.freedom < 1:
            return None
        return abs(self.spread.mean) > critical(self.freedom) * error

    @property
    def verdict(self) -> str:
        if self.is_significant is None:
            return "one run says nothing of it"
        return (
            ("higher" if self.spread.mean > 0 else "lower")
            if self.is_significant
            else "no difference seen"
        )


def difference(first: Mapping[Seed, float], second: Mapping[Seed, float]) -> Difference:
    """Compare values by seed: in pairs where two seeds or more are in both sets, else Welch's way.

    Runs of the same seed share their random numbers, so their differences spread less.
    """
    shared = [seed for seed in first if seed in second]
    if len(shared) >= 2:
        return Difference(
            Spread.of(second[seed] - first[seed] for seed in shared), len(shared) - 1, True
        )
    one, other = Spread.of(first.values()), Spread.of(second.values())
    far, fewest = other.mean - one.mean, min(one.count, other.count)
    if fewest < 2:
        return Difference(Spread(far, nan, fewest), 0, False)
    parts = [(one.error**2, one.count - 1), (other.error**2, other.count - 1)]
    total = parts[0][0] + parts[1][0]
    freedom = total**2 / sum(v**2 / n for v, n in parts) if total else inf
    return Difference(Spread(far, sqrt(total), fewest), freedom, False)


def critical(freedom: float) -> float:
    """Student's t of 95 % confidence, between whole degrees of freedom linear in their inverse."""
    if freedom >= len(_T):
        return _LIMIT + (_T[-1] - _LIMIT) * len(_T) / freedom
    below = int(freedom)
    low, high = _T[below - 1], _T[below]
    return low + (high - low) * (1 / below - 1 / freedom) * below * (below + 1)


def _digits(error: float) -> int:
    """Return the decimals that show two digits of an error."""
    digits, size = 0, abs(error)
    while 0 < size < 9.5 and digits < 6:
        size, digits = size * 10, digits + 1
    return digits


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
    """Return the iterations of a round."""
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
    until, trials = monotonic() + seconds, dict[int, dict[int, Trial]]()
    for seed in range(seeds):
        best = inf
        for number, (strategy, workers, cluster) in enumerate(candidates):
            if seed and not (number in trials and trials[number][0].reached):
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
                trials.setdefault(number, {})[seed] = one
    return [Trial.joined(runs) for runs in trials.values()]


def _reseeded(solver: Any, seed: int) -> Any:
    """Return a solver with initial weights of another seed; a net keeps its weights."""
    if solver is None or isinstance(solver, Net) or not seed:
        return solver
    other = settings(solver)
    if other.random_seed >= 0:
        other.random_seed += seed
    return other
