"""Each strategy against plain averaging of equal bytes, and of equal synchronisations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from benchmarks.papers.cells import Cell, Item, Part, Said, Table
from benchmarks.papers.trainings import Arm, Run, apart, averaging, round_of, run, spread
from sparknet.summary.spread import Difference, Spread
from sparknet.training import (
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
from sparknet.training.planning.planned import short

SIZES = (2, 4, 8)
TUNING = (101, 102)
"""Seeds by which learning rates are chosen."""
STRATEGIES: tuple[Strategy, ...] = (
    Averaging(10, momentum="average"),
    Averaging(10, codec="fp16"),
    Averaging(10, codec="int8"),
    DynamicAveraging(0.05),
    DynamicAveraging(0.1),
    AllReduce(),
    Downpour(),
    Downpour(codec="int8"),
    ElasticAveraging(every=10),
    SlowMo(10),
    SlowMo(10, beta=0.5, momentum="keep"),
    DiLoCo(50),
    BMUF(50),
)


@dataclass(frozen=True)
class Task:
    name: str
    told: str
    steps: int
    batch: int
    rates: tuple[float, ...]
    hidden: int
    measure: Literal["accuracy", "loss"]

    def arm(self, strategy: Strategy, workers: int) -> Arm:
        """At the rate that is the best for it with two seeds of which no table has any."""
        arms = [self._at(rate, strategy, workers) for rate in self.rates]
        if len(arms) == 1:
            return arms[0]
        best = max if self.measure == "accuracy" else min
        return best(arms, key=lambda arm: sum(self.number(run(arm, seed)) for seed in TUNING))

    def _at(self, rate: float, strategy: Strategy, workers: int) -> Arm:
        return Arm(
            strategy,
            workers,
            self.steps,
            task=self.name,
            batch=self.batch,
            rate=rate,
            hidden=self.hidden,
        )

    def number(self, one: Run) -> float:
        return one.accuracy if self.measure == "accuracy" else one.loss

    @property
    def scale(self) -> float:
        return 100.0 if self.measure == "accuracy" else 1.0

    @property
    def digits(self) -> int:
        return 2 if self.measure == "accuracy" else 4


TASKS = (
    Task("digits", "accuracy in %, more is better", 300, 8, (0.01, 0.02, 0.05), 32, "accuracy"),
    Task("cancer", "loss on held-out records, less is better", 200, 8, (0.03, 0.1), 16, "loss"),
)


def equal_bytes(task: Task, strategy: Strategy, workers: int) -> Arm:
    """Plain averaging with rounds so long that it sends as many bytes."""
    once = task.arm(Averaging(10), workers)
    each = spread(once, lambda one: one.sent / one.synchronisations).mean
    sent = spread(task.arm(strategy, workers), lambda one: one.sent).mean
    return task.arm(averaging(task.steps * each / max(sent, 1.0), task.steps), workers)


def equal_synchronisations(task: Task, strategy: Strategy, workers: int) -> Arm:
    count = spread(task.arm(strategy, workers), lambda one: one.synchronisations).mean
    return task.arm(averaging(task.steps / max(count, 1.0), task.steps), workers)


CONTROLS = (equal_bytes, equal_synchronisations)


def verdict(task: Task, found: Difference) -> str:
    if not found.seen:
        return "no difference seen"
    return "better" if (found.spread.mean > 0) == (task.measure == "accuracy") else "worse"


Control = Callable[[Task, Strategy, int], Arm]


def _apart(task: Task, strategy: Strategy, workers: int, control: Control) -> Difference:
    return apart(task.arm(strategy, workers), control(task, strategy, workers), task.number)


def _row(task: Task, strategy: Strategy, workers: int) -> list[Item]:
    row = _numbers(task, f"`{short(strategy)}`", strategy, workers)
    for control in CONTROLS:
        given = (task, strategy, workers, control)

        def length(control: Control = control) -> str:
            return str(round_of(control(task, strategy, workers).strategy))

        row += [
            Said(length),
            Cell(partial(_spread, *given), task.scale, task.digits, signed=True),
            Said(partial(_verdict, *given)),
        ]
    return row


def _spread(task: Task, strategy: Strategy, workers: int, control: Control) -> Spread:
    return _apart(task, strategy, workers, control).spread


def _verdict(task: Task, strategy: Strategy, workers: int, control: Control) -> str:
    return verdict(task, _apart(task, strategy, workers, control))


def _numbers(task: Task, name: str, strategy: Strategy, workers: int) -> list[Item]:
    def arm() -> Arm:
        return task.arm(strategy, workers)

    return [
        name,
        Said(lambda: f"{arm().rate:g}"),
        Cell(lambda: spread(arm(), task.number), task.scale, task.digits),
        Cell(lambda: spread(arm(), lambda one: one.sent), 1e-6),
        Cell(lambda: spread(arm(), lambda one: one.synchronisations), digits=0),
    ]


HEAD = (
    *("strategy", "rate", "{}", "MB sent by each", "synchronisations"),
    *("τ of equal bytes", "difference", "verdict"),
    *("τ of equal synchronisations", "difference", "verdict"),
)


def controls(task: Task) -> Part:
    head = [one.format(task.measure) for one in HEAD]
    tables = [
        Table(
            head,
            [
                [*_numbers(task, "one worker", Averaging(10), 1), *[""] * 6],
                [*_numbers(task, "`Averaging(10)`", Averaging(10), size), *[""] * 6],
                *(_row(task, strategy, size) for strategy in STRATEGIES),
            ],
            f"**K = {size}**",
        )
        for size in SIZES
    ]
    return Part(
        f"controls_{task.name}",
        f"The strategies with their controls: {task.name}",
        lambda: _told(task),
        tables,
    )


def _told(task: Task) -> str:
    data = (
        "the net of this page on the digits"
        if task.name == "digits"
        else "30 numbers of each of scikit-learn's 569 records of breast cancer, 30% of them held "
        "out, others for each seed; 16 hidden units"
    )
    lines = [
        f"{task.steps} steps of each worker with batches of {task.batch}, {data}; {task.told}. "
        "Each strategy is held against plain averaging with rounds of τ steps, once with τ so that "
        "it sends as many bytes, once so that it synchronises as often; all make as many steps. "
        f"Each strategy and each control has the best of the learning rates "
        f"{', '.join(f'{rate:g}' for rate in task.rates)}, chosen by two other seeds: a strategy "
        "that adds up the workers' changes, or has an outer momentum, gains at a small rate by its "
        f"larger steps alone. {_at_the_end(task)}"
        "Differences are paired by seed, and positive where the strategy's number is larger. "
        "One worker makes as many steps, and so sees a K-th of the samples. "
        "With so many comparisons, about one in twenty is taken for a difference by chance."
    ]
    counts: dict[str, list[str]] = {}
    for strategy in STRATEGIES:
        for control in CONTROLS:
            found = [_verdict(task, strategy, size, control) for size in SIZES]
            counts.setdefault(short(strategy), []).append(_in_words(found))
    lines += [
        "",
        *(
            f"- `{name}`: against equal bytes {one}; against equal synchronisations {other}."
            for name, (one, other) in counts.items()
        ),
    ]
    return "\n".join(lines)


def _at_the_end(task: Task) -> str:
    """Whether the grid of rates is too short."""
    rates = [task.arm(one, size).rate for one in STRATEGIES for size in SIZES]
    ends = {"largest": max(task.rates), "smallest": min(task.rates)}
    told = [f"{rates.count(rate)} the {name}" for name, rate in ends.items() if rate in rates]
    return (
        f"Of the {len(rates)} rows {' and '.join(told)}, so that a rate beyond the grid might be "
        "better still. "
    )


def _in_words(found: Sequence[str]) -> str:
    if len(set(found)) == 1:
        return f"{found[0]} at every K"
    return ", ".join(f"{one} at K = {size}" for size, one in zip(SIZES, found, strict=True))
