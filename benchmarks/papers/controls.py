"""Each strategy against plain averaging of equal bytes, and of equal synchronisations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from benchmarks.papers.cells import Item, MarkdownTable, Part, Said, TableCell
from benchmarks.papers.trainings import Arm, ArmRun, apart, averaging, round_of, run, spread
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
from sparknet.training.planning.advice import short
from sparknet.training.planning.trials import Difference, Spread

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
    steps: int
    batch: int
    rates: tuple[float, ...]
    """Learning rates, in ascending order."""
    hidden: int
    measure: Literal["accuracy", "loss"]
    first: tuple[int, int | None] = (0, None)
    """From where to where rates are tried; and the next one, as long as the best is at an end."""

    def arm(self, strategy: Strategy, workers: int) -> Arm:
        """At the rate that is the best for it with two seeds of which no table has any."""
        low, high, _ = slice(*self.first).indices(len(self.rates))
        if high - low == 1:
            return self._at(self.rates[low], strategy, workers)
        while True:
            arms = [self._at(rate, strategy, workers) for rate in self.rates[low:high]]
            best = max(arms, key=self._score)
            if best is arms[0] and low > 0:
                low -= 1
            elif best is arms[-1] and high < len(self.rates):
                high += 1
            else:
                return best

    def _score(self, arm: Arm) -> float:
        sign = 1 if self.measure == "accuracy" else -1
        return sign * sum(self.number(run(arm, seed)) for seed in TUNING)

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

    def number(self, one: ArmRun) -> float:
        return one.accuracy if self.measure == "accuracy" else one.loss

    @property
    def scale(self) -> float:
        return 100.0 if self.measure == "accuracy" else 1.0

    @property
    def digits(self) -> int:
        return 2 if self.measure == "accuracy" else 4


DIGITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
CANCER = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
TASKS = (
    Task("digits", 300, 8, DIGITS, 32, "accuracy", first=(3, 6)),
    Task("cancer", 200, 8, CANCER, 16, "loss", first=(4, 6)),
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
    """What a difference says; one of rounding, which the table's digits do not show, is none."""
    is_shown = abs(found.spread.mean) * task.scale >= 0.5 * 10**-task.digits
    if not found.is_significant or not is_shown:
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
            TableCell(partial(_spread, *given), task.scale, task.digits, signed=True),
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
        TableCell(lambda: spread(arm(), task.number), task.scale, task.digits),
        TableCell(lambda: spread(arm(), lambda one: one.sent), 1e-6),
        TableCell(lambda: spread(arm(), lambda one: one.synchronisations), digits=0),
    ]


HEAD = (
    *("strategy", "rate", "{}", "MB sent by each", "synchronisations"),
    *("τ of equal bytes", "difference", "verdict"),
    *("τ of equal synchronisations", "difference", "verdict"),
)


def controls(task: Task) -> Part:
    head = [one.format(task.measure) for one in HEAD]
    tables = [
        MarkdownTable(
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
    rates = ", ".join(f"{rate:g}" for rate in task.rates[slice(*task.first)])
    data = (
        "Net and digits are those of the papers' figures. The number is the accuracy in %: more "
        "is better."
        if task.name == "digits"
        else "The data are 30 numbers of each of scikit-learn's 569 records of breast cancer; 30% "
        "of them are held out, others for each seed. The net has 16 hidden units. The number is "
        "the loss on held-out records: less is better."
    )
    return (
        f"{task.steps} steps of each worker with batches of {task.batch}. {data} Each strategy is "
        "held against plain averaging with rounds of τ steps. One τ sends as many bytes, the other "
        "synchronises as often; all make as many steps.\n\n"
        f"Each strategy and each control has the best of the learning rates {rates}, chosen by two "
        "other seeds. As "
        f"long as the best is at an end, the next of {task.rates[0]:g} … {task.rates[-1]:g} is "
        "tried, too. A strategy that adds up the workers' changes, or has an outer momentum, gains "
        "at a small rate by its larger steps alone.\n\n"
        "Differences are paired by seed, and positive where the strategy's number is larger. "
        "One worker makes as many steps, and so sees a K-th of the samples. With so many "
        f"comparisons, about one in twenty is taken for a difference by chance.\n\n{_seen(task)}"
    )


Comparison = tuple[Strategy, int, Control]


def _comparisons() -> list[Comparison]:
    return [(one, size, control) for one in STRATEGIES for size in SIZES for control in CONTROLS]


def _name(comparison: Comparison) -> str:
    strategy, size, control = comparison
    return f"`{short(strategy)}` at K = {size} against equal {control.__name__.split('_')[1]}"


def _seen(task: Task) -> str:
    """The comparisons in which a difference is seen."""
    verdicts = {_name(each): _verdict(task, *each) for each in _comparisons()}
    seen = [f"- {name}: {one}." for name, one in verdicts.items() if one in ("better", "worse")]
    if not seen:
        return "No difference is seen."
    return "No difference is seen, except:\n\n" + "\n".join(seen)
