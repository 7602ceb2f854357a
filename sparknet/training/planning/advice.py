"""What is compared, and which of it is the best and why."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Literal

from sparknet.training.planning.planned import Row, duration, short
from sparknet.training.planning.spread import difference
from sparknet.training.planning.trials import Trial
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)

Target = Literal["time", "cost", "traffic"]

LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200)
"""The τ that are compared."""
_PATIENCE = 2.0
"""Least traffic is searched among what takes at most so many times the shortest time."""


def strategies(workers: int) -> list[Strategy]:
    """What is compared."""
    if workers == 1:
        return [Averaging(1)]
    return [
        *(Averaging(steps) for steps in LENGTHS),
        Averaging(10, codec="fp16"),
        Averaging(10, codec="int8"),
        AllReduce(),
        DynamicAveraging(),
        DynamicAveraging(sync_at_least_every=DynamicAveraging().check_every),
        Downpour(),
        ElasticAveraging(),
        SlowMo(),
        DiLoCo(100),
        BMUF(),
    ]


def needed(strategy: Strategy, workers: int) -> float | None:
    """A rule of thumb: iterations of each worker until an accuracy, relative to one worker's.

    It follows LeNet on digits (docs/planning.md); None for strategies of which less is known.
    """
    if isinstance(strategy, AllReduce):
        return float(workers**-0.15)
    if not isinstance(strategy, Averaging) or strategy.codec is not None:
        return None
    return float(workers**-0.15 * (1 + strategy.steps / 150 * (1 - 1 / workers)))


def promising(rows: Sequence[Row], target: Target) -> list[Row]:
    """The candidates, the best by the rule of thumb first."""
    known = [row for row in rows if row.needed is not None]
    return sorted(known, key=lambda row: _score(row, target))


def _score(row: Row, target: Target) -> float:
    needed = row.needed or inf
    if target == "traffic":
        return needed * row.megabytes * row.workers
    return needed * row.iteration * (row.workers if target == "cost" else 1)


def advised(rows: Sequence[Row], trials: Sequence[Trial], target: Target) -> tuple[Row, list[str]]:
    """The best row, and why it is the best."""
    known = promising(rows, target)
    reached = [one for one in trials if one.reached]
    if not reached:
        return _by_rule(known, target)
    pairs = [
        (row, one)
        for row in known
        for one in reached
        if (row.strategy, row.workers) == (one.strategy, one.workers)
    ]
    fast = min(one.seconds for _, one in pairs)

    def cost(pair: tuple[Row, Trial]) -> float:
        row, one = pair
        if target == "traffic":
            late = one.seconds > _PATIENCE * fast
            return inf if late else row.megabytes * row.workers * one.iterations
        return one.seconds * (row.workers if target == "cost" else 1)

    best, one = min(pairs, key=cost)
    many = f", means over {one.seeds} seeds" if one.seeds > 1 else " with one seed"
    reasons = [
        f"in virtual time it reached {one.accuracy:.2%} after {one.iterations:.0f} iterations, "
        f"{duration(one.seconds)}{many}, best of {len(trials)} trials for the least {target}"
    ]
    close = [row for row, other in pairs if _close(other, one)]
    return best, [*reasons, *_uncertain(best, close, "no slower, as far as these seeds show")]


def _by_rule(known: Sequence[Row], target: Target) -> tuple[Row, list[str]]:
    fast = min(row.until_accuracy or inf for row in known)
    if target == "traffic":
        known = [row for row in known if (row.until_accuracy or inf) <= _PATIENCE * fast]
    best = known[0]
    others = [row for row in known[1:] if _score(row, target) <= 1.05 * _score(best, target)]
    rule = (
        "how many iterations an accuracy needs is a rule of thumb here, from LeNet on digits: "
        "validation data and an accuracy let it be tried"
    )
    return best, [f"it has the least {target} until an accuracy", rule, *_uncertain(best, others)]


def _close(one: Trial, best: Trial) -> bool:
    """Whether no difference is seen over the seeds; within 5 % where there are too few of them."""
    seen = difference(best.by_seed, one.by_seed).seen
    return one is not best and (one.seconds <= 1.05 * best.seconds if seen is None else not seen)


def _uncertain(best: Row, others: Sequence[Row], close: str = "within 5 % of it") -> list[str]:
    found = []
    if best.error:
        found.append(f"the times are uncertain by {best.error:.0%}, as rounds took unequally long")
    if others:
        named = ", ".join(f"{short(row.strategy)} with {row.workers}" for row in others[:4])
        found.append(f"{close}: {named}")
    return found
