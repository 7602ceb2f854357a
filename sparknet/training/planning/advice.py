"""What `plan` found, as text and as JSON, and which strategy is the best and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from typing import Any, Literal

from sparknet.graph.summary import aligned
from sparknet.training.planning.measurement import Measured
from sparknet.training.planning.trials import Spread, Trial, difference
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


@dataclass(frozen=True)
class Row:
    """A strategy on so many workers."""

    strategy: Strategy
    workers: int
    batch: int
    iteration: float
    """Seconds of an iteration of all workers."""
    epoch: float | None
    """Seconds of an epoch; None where the number of records is not known."""
    share: float
    """The share of communication, waiting included."""
    megabytes: float
    """Sent by each worker in 1000 iterations."""
    error: float
    """The relative uncertainty of the times."""
    needed: float | None
    """Iterations for an accuracy, relative to those of one worker; None where nothing is known."""

    @property
    def until_accuracy(self) -> float | None:
        """The relative time until an accuracy, in seconds for each of one worker's iterations."""
        return None if self.needed is None else self.needed * self.iteration


@dataclass(frozen=True)
class Planned:
    """Measured times, predicted ones, and what follows from them."""

    net: str
    bytes: int
    """Of the weights."""
    records: int | None
    target: str
    measured: Sequence[Measured]
    rows: Sequence[Row]
    strategy: Strategy
    """The advice."""
    workers: int
    """The advice."""
    batch: int
    reasons: Sequence[str]
    trials: Sequence[Trial] = field(default=())

    @property
    def notes(self) -> list[str]:
        """What the predictions leave out."""
        dynamic = any(isinstance(row.strategy, DynamicAveraging) for row in self.rows)
        return [DYNAMIC] if dynamic else []

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON, which `sparknet report` shows."""
        return {
            "event": "plan",
            **{name: getattr(self, name) for name in ("net", "bytes", "records", "target")},
            "measured": [asdict(one) for one in self.measured],
            "notes": self.notes,
            "rows": [{**asdict(row), "strategy": short(row.strategy)} for row in self.rows],
            "strategy": self.strategy.settings(),
            "advice": short(self.strategy),
            "workers": self.workers,
            "batch": self.batch,
            "reasons": list(self.reasons),
            "trials": [{**asdict(one), "strategy": short(one.strategy)} for one in self.trials],
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        records = "" if self.records is None else f", {self.records:,} records"
        yield f"{self.net}: {self.bytes / 1e6:.4g} MB of weights{records}"
        if self.measured:
            yield from ("", "measured")
            yield from aligned(
                [MEASURED, *(measured_row(one) for one in self.measured)], len(MEASURED)
            )
        yield from ("", "predicted")
        yield from aligned([PREDICTED, *(predicted_row(row) for row in self.rows)], len(PREDICTED))
        yield from self.notes
        if self.trials:
            yield from ("", "tried in virtual time")
            yield from aligned([TRIED, *(tried_row(one) for one in self.trials)], len(TRIED))
        batch = f"batches of {self.batch}"
        yield from ("", f"advice: {short(self.strategy)}, {_workers(self.workers)}, {batch}")
        yield from (f"- {reason}" for reason in self.reasons)


DYNAMIC = (
    "DynamicAveraging synchronises when the workers have moved apart, which depends on the "
    "training: its two rows are without any synchronisation and with one at every check"
)
MEASURED = ("workers", "batch", "step", "slowest", "synchronisation", "±")
PREDICTED = (
    "strategy",
    "workers",
    "batch",
    "epoch",
    "iteration",
    "communication",
    "MB / 1000 it.",
    "±",
)
TRIED = ("strategy", "workers", "seeds", "iterations", "simulated time", "accuracy")


def measured_row(one: Measured) -> list[str]:
    sync = milli(one.sync) if one.workers > 1 else ""
    mark = "*" if one.calculated else ""
    slowest = f"{max(one.slow):.2f} x"
    sure = f"{one.error:.0%}"
    return [str(one.workers), str(one.batch), milli(one.step) + mark, slowest, sync, sure]


def predicted_row(row: Row) -> list[str]:
    epoch = "" if row.epoch is None else duration(row.epoch)
    numbers = [milli(row.iteration), f"{row.share:.0%}", f"{row.megabytes:.4g}", f"{row.error:.0%}"]
    return [short(row.strategy), str(row.workers), str(row.batch), epoch, *numbers]


def tried_row(one: Trial) -> list[str]:
    reached = f"{one.accuracy:.2%}" if one.reached else f"{one.accuracy:.2%} (given up)"
    return [
        short(one.strategy),
        str(one.workers),
        str(one.seeds),
        Spread(one.iterations, one.iterations_error, one.seeds).text(digits=0),
        duration(one.seconds) + _relative(one.seconds_error, one.seconds),
        reached,
    ]


def _relative(error: float, value: float) -> str:
    return f" ± {error / value:.0%}" if value and isfinite(error) else ""


def short(strategy: Strategy) -> str:
    """Return a strategy with the settings that are not the usual ones."""
    usual = type(strategy)().settings()
    values = strategy.settings()
    texts = [f"{name}={value!r}" for name, value in values.items() if usual.get(name) != value]
    if "steps" in values and "steps" in usual and values["steps"] == usual["steps"]:
        texts.insert(0, f"steps={values['steps']!r}")
    return f"{type(strategy).__name__}({', '.join(texts)})"


def milli(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


Target = Literal["time", "cost", "traffic"]

LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200)
"""The τ that are compared."""
_PATIENCE = 2.0
"""Least traffic is searched among what takes at most so many times the shortest time."""


def strategies(workers: int) -> list[Strategy]:
    """Return what is compared."""
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
    """Return a rule of thumb: iterations of each worker until an accuracy, relative to one
    worker's.

    It follows LeNet on digits (docs/planning.md); None for strategies of which less is known.
    """
    if isinstance(strategy, AllReduce):
        return float(workers**-0.15)
    if not isinstance(strategy, Averaging) or strategy.codec is not None:
        return None
    return float(workers**-0.15 * (1 + strategy.steps / 150 * (1 - 1 / workers)))


def promising(rows: Sequence[Row], target: Target) -> list[Row]:
    """Return the candidates, the best by the rule of thumb first."""
    candidates = [row for row in rows if row.needed is not None]
    return sorted(candidates, key=lambda row: _score(row, target))


def _score(row: Row, target: Target) -> float:
    needed = row.needed or inf
    if target == "traffic":
        return needed * row.megabytes * row.workers
    return needed * row.iteration * (row.workers if target == "cost" else 1)


def advised(rows: Sequence[Row], trials: Sequence[Trial], target: Target) -> tuple[Row, list[str]]:
    """Return the best row, and why it is the best."""
    candidates = promising(rows, target)
    reached = [one for one in trials if one.reached]
    if not reached:
        return _by_rule(candidates, target)
    pairs = [
        (row, one)
        for row in candidates
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


def _by_rule(rows: Sequence[Row], target: Target) -> tuple[Row, list[str]]:
    fast = min(row.until_accuracy or inf for row in rows)
    if target == "traffic":
        rows = [row for row in rows if (row.until_accuracy or inf) <= _PATIENCE * fast]
    best = rows[0]
    others = [row for row in rows[1:] if _score(row, target) <= 1.05 * _score(best, target)]
    rule = (
        "how many iterations an accuracy needs is a rule of thumb here, from LeNet on digits: "
        "validation data and an accuracy let it be tried"
    )
    return best, [f"it has the least {target} until an accuracy", rule, *_uncertain(best, others)]


def _close(one: Trial, best: Trial) -> bool:
    """Return whether two rows do not differ: over the seeds, or by 5 % where there are too few."""
    count = difference(best.by_seed, one.by_seed).is_significant
    return one is not best and (one.seconds <= 1.05 * best.seconds if count is None else not count)


def _uncertain(best: Row, others: Sequence[Row], close: str = "within 5 % of it") -> list[str]:
    sentences = []
    if best.error:
        sentences.append(
            f"the times are uncertain by {best.error:.0%}, as rounds took unequally long"
        )
    if others:
        names = ", ".join(f"{short(row.strategy)} with {row.workers}" for row in others[:4])
        sentences.append(f"{close}: {names}")
    return sentences
