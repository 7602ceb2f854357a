"""Loss over bytes: from all-reduce in each step to rounds of hundreds of steps in a few bits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from benchmarks.papers.cells import Item, MarkdownTable, Part, Said, TableCell
from benchmarks.papers.trainings import SEEDS, Arm, ArmRun, over_seeds, run, spread
from sparknet.training import AllReduce, Averaging, DiLoCo, Strategy
from sparknet.training.planning.advice import short
from sparknet.training.planning.trials import Spread, difference

WORKERS = (4,)
RATES, TUNING = (0.01, 0.02, 0.04), 101
"""Learning rates, of which each strategy takes its best with a seed that no table has."""
STEPS, BATCH, HIDDEN = 1000, 4, 5000
"""A million parameters."""
DENSE = AllReduce(10)
STRATEGIES: tuple[Strategy, ...] = (
    DENSE,
    Averaging(25),
    Averaging(25, codec="sparse"),
    DiLoCo(100),
    DiLoCo(100, codec="int4"),
    DiLoCo(100, codec="sparse"),
    DiLoCo(250, codec="int4"),
    DiLoCo(50, codec="sparse"),
)


@cache
def arm(strategy: Strategy, workers: int) -> Arm:
    return tuned(Arm(strategy, workers, STEPS, batch=BATCH, hidden=HIDDEN))


@cache
def alone(workers: int) -> Arm:
    """One worker with its share of the data."""
    records = 8500 // workers
    return tuned(Arm(Averaging(10), 1, STEPS, batch=BATCH, hidden=HIDDEN, records=records))


def tuned(one: Arm) -> Arm:
    arms = [replace(one, rate=rate) for rate in RATES]
    return min(arms, key=lambda each: run(each, TUNING).loss)


def loss(training: ArmRun) -> float:
    return training.loss


def above(one: Arm, workers: int) -> Spread:
    """How much larger its loss is than all-reduce's, as a share of that, in pairs of a seed."""
    control = over_seeds(arm(DENSE, workers), loss)
    ours = over_seeds(one, loss)
    shares = {seed: ours[seed] / control[seed] - 1 for seed in control}
    return difference(dict.fromkeys(shares, 0.0), shares).spread


def fewer(one: Arm, workers: int) -> str:
    sent = spread(one, _sent).mean
    return f"{spread(arm(DENSE, workers), _sent).mean / sent:,.0f}" if sent else "–"


def _sent(training: ArmRun) -> float:
    return training.sent


def rows(workers: int) -> list[list[Item]]:
    arms = [(short(strategy), arm(strategy, workers)) for strategy in STRATEGIES]
    arms.append((f"one worker, 1/{workers} of the data", alone(workers)))
    return [
        [
            name,
            f"{one.rate:g}",
            TableCell(partial(spread, one, loss), digits=4),
            TableCell(partial(above, one, workers), 100, 1, signed=True),
            TableCell(partial(spread, one, _sent), 1e-6, 2),
            Said(partial(fewer, one, workers)),
        ]
        for name, one in arms
    ]


def fewer_bytes() -> Part:
    head = ("strategy", "rate", "loss", "above all-reduce's, %", "MB of each worker", "times fewer")
    tables = [MarkdownTable(head, rows(workers), f"**K = {workers}**:") for workers in WORKERS]

    def text() -> str:
        return (
            f"A net with {HIDDEN:,} hidden units (a million parameters) learns the digits. Each "
            f"worker makes {STEPS:,} steps of {BATCH} records. All-reduce sends gradients and "
            "changes in each step. Each strategy has the best of "
            f"{len(RATES)} learning rates, by a seed of its own. Losses are of validation, over "
            f"{SEEDS} seeds; differences are paired."
        )

    return Part("fewer_bytes", "Loss over bytes, a million parameters", text, tables)
