"""TensorSpark (Arimo, 2016): studies of staleness, size of the data and size of the model."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.papers.cells import Item, MarkdownTable, Part, Said, TableCell
from benchmarks.papers.trainings import Arm, ArmRun, apart, spread
from sparknet.training import Averaging, Downpour
from sparknet.training.planning.trials import Difference, Spread

WORKERS, SAMPLES = 4, 25600
PULLS, BATCHES = (1, 4, 16), (4, 16, 64)
COUNTS = (500, 2000, 8500)
HIDDEN = (8, 32, 128)
UNEQUAL, WARMUPS = (0.0, 1.0, 5.0), (0, 50)
BATCH = 16
_WIDE = 2e5
"""Bytes in the time of a step, of the study of model sizes."""


def accuracy(run: ArmRun) -> float:
    return run.accuracy


def together(batch: int = BATCH, pull: int = 1, bound: int | None = 1000, **more: Any) -> Arm:
    strategy = Downpour(pull_every=pull, max_staleness=bound)
    steps = SAMPLES // (batch * WORKERS)
    return Arm(strategy, WORKERS, steps, batch=batch, jitter=0.2, **more)


def begun(unequal: float, warmup: int) -> Arm:
    strategy = Downpour(unequal=unequal, warmup=warmup)
    return Arm(strategy, WORKERS, SAMPLES // (BATCH * WORKERS), batch=BATCH, jitter=0.2)


def alone(**more: Any) -> Arm:
    return Arm(Averaging(10), 1, SAMPLES // BATCH, batch=BATCH, **more)


def _dropped(run: ArmRun) -> float:
    return run.dropped


def _sent(run: ArmRun) -> float:
    return run.sent


def _speedup(run: ArmRun) -> float:
    return SAMPLES / BATCH / run.seconds


def _apart(one: Arm, several: Arm) -> Difference:
    return apart(several, one, accuracy)


def _spread(one: Arm, several: Arm) -> Spread:
    return _apart(one, several).spread


def _verdict(one: Arm, several: Arm) -> str:
    return _apart(one, several).verdict


def _percent(arm: Arm) -> TableCell:
    return TableCell(lambda: spread(arm, accuracy), 100, unit=" %")


def _sizes(name: str) -> list[list[Item]]:
    rows: list[list[Item]] = []
    for value in COUNTS if name == "records" else HIDDEN:
        more: dict[str, Any] = {name: value} | ({} if name == "records" else {"bandwidth": _WIDE})
        one, several = alone(**more), together(**more)

        row: list[Item] = [
            f"{value:,}",
            _percent(one),
            _percent(several),
            TableCell(partial(_spread, one, several), 100, signed=True),
            Said(partial(_verdict, one, several)),
        ]
        if name == "hidden":
            row += [
                TableCell(partial(spread, several, _sent), 1e-6, 1),
                TableCell(partial(spread, several, _speedup)),
            ]
        rows.append(row)
    return rows


def tensorspark() -> Part:
    stale = MarkdownTable(
        ("batch", *(f"staleness {WORKERS * pull - 1}" for pull in PULLS)),
        [[str(batch), *(_percent(together(batch, pull)) for pull in PULLS)] for batch in BATCHES],
        "**Staleness**: the usual number of contributions between a worker's pull and its push.",
    )
    rows = [(pull, bound) for pull in PULLS for bound in (1000, 15, None)]
    bounds = MarkdownTable(
        ("staleness", "max_staleness", "accuracy", "pushes dropped"),
        [
            [
                str(WORKERS * pull - 1),
                "default" if bound is None else str(bound),
                _percent(together(pull=pull, bound=bound)),
                TableCell(
                    partial(spread, together(pull=pull, bound=bound), _dropped), 100, unit=" %"
                ),
            ]
            for pull, bound in rows
        ],
        f"**What is dropped**, batches of {BATCH}:",
    )
    beginnings = MarkdownTable(
        ("unequal", *(f"warm-up of {warmup}" for warmup in WARMUPS)),
        [
            [f"{unequal:g}", *(_percent(begun(unequal, warmup)) for warmup in WARMUPS)]
            for unequal in UNEQUAL
        ],
        f"**Unequal beginnings** (Figures 5 and 6), batches of {BATCH}. `unequal` is the noise in "
        "the initial weights of all workers but the first, as a share of their root mean square. "
        "The warm-up is the steps of the first one alone before the first round.",
    )
    head = ("one worker", f"Downpour, K = {WORKERS}", "difference, points", "verdict")
    data = MarkdownTable(
        ("records", *head), _sizes("records"), f"**Size of the data**, batches of {BATCH}:"
    )
    model = MarkdownTable(
        ("hidden units", *head, "MB sent by each", "speed-up"),
        _sizes("hidden"),
        f"**Size of the model**, batches of {BATCH}. The speed-up is simulated: a worker sends "
        f"{_WIDE / 1e6:g} MB in the time of a step, whatever the model.",
    )

    def text() -> str:
        fresh, worst = (
            spread(together(BATCHES[0], pull), accuracy).mean for pull in (PULLS[0], PULLS[-1])
        )
        return (
            f"{SAMPLES:,} samples in all. Staleness costs accuracy: with batches of {BATCHES[0]} "
            f"it is {fresh:.1%} at staleness {WORKERS * PULLS[0] - 1} and {worst:.1%} at "
            f"{WORKERS * PULLS[-1] - 1}. The changes of many steps from the same weights add up, "
            "as if the learning rate were as many times larger. No number of the talk stands "
            "beside these. More bytes for each step make the larger model's speed-up smaller. The "
            "tables show what the sizes do to the accuracy after equally many samples."
        )

    return Part(
        "tensorspark",
        f"TensorSpark: staleness, data size and model size, {WORKERS} workers",
        text,
        [stale, bounds, beginnings, data, model],
    )
