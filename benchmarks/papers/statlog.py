"""StatLog (Michie, Spiegelhalter and Taylor, 1994): letters and a satellite's pixels.

The data lie in Debian's package r-cran-mlbench, which the Python package rdata reads:
`apt-get install r-cran-mlbench` and `pip install rdata`; SPARKNET_MLBENCH names another folder.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.papers.cells import MarkdownTable, Part, TableCell
from benchmarks.papers.strategies import STRATEGIES, WORKERS, train_by, workers_of
from sparknet import (
    LinearLayer,
    NetParams,
    RDDLayer,
    ReLU,
    Softmax,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.training.planning.trials import Spread

FOLDER = Path(os.environ.get("SPARKNET_MLBENCH", "/usr/lib/R/site-library/mlbench/data"))
HIDDEN, BATCH, EPOCHS = (128, 128), 32, 40


@dataclass(frozen=True)
class Task:
    """A data set, the records that the book trains on, and errors of its table."""

    name: str
    label: str
    trained: int
    published: dict[str, float] = field(hash=False)


TASKS = (
    Task(
        "LetterRecognition",
        "lettr",
        15000,
        {"ALLOC80": 0.064, "k-NN": 0.07, "LVQ": 0.079, "C4.5": 0.132, "back-propagation": 0.327},
    ),
    Task(
        "Satellite",
        "classes",
        4435,
        {"k-NN": 0.094, "LVQ": 0.105, "DIPOL92": 0.111, "C4.5": 0.150, "back-propagation": 0.139},
    ),
)


@cache
def table(task: Task) -> tuple[Any, Any]:
    """Return values, scaled by those of the training set, and class numbers."""
    import rdata

    path = FOLDER / f"{task.name}.rda"
    if not path.is_file():
        raise SystemExit(f"{path}: no such file: apt-get install r-cran-mlbench")
    frame = rdata.read_rda(path)[task.name]
    labels = frame[task.label].astype("category").cat.codes.to_numpy(np.float32)
    values = frame.drop(columns=task.label).to_numpy(np.float64)
    train = values[: task.trained]
    return ((values - train.mean(axis=0)) / train.std(axis=0)).astype(np.float32), labels


def solver(task: Task, steps: int, seed: int) -> SolverParams:
    values, labels = table(task)
    layers = [RDDLayer("data", shape=[BATCH, values.shape[1]]), RDDLayer("label", shape=[BATCH])]
    before = "data"
    for number, width in enumerate(HIDDEN, 1):
        name = f"fc{number}"
        layers += [
            LinearLayer(name, before, num_outputs=width),
            ReLU(f"relu{number}", name, in_place=True),
        ]
        before = name
    layers += [
        LinearLayer("score", before, num_outputs=int(labels.max()) + 1),
        SoftmaxWithLoss("loss", ["score", "label"]),
        Softmax("prob", "score", phase="TEST"),
    ]
    return SolverParams(
        net=NetParams("mlp", *layers),
        type="Adam",
        base_lr=0.001,
        momentum=0.9,
        momentum2=0.999,
        lr_policy="cosine",
        max_iter=steps,
        random_seed=seed,
    )


@cache
def error(task: Task, arm: str, seed: int) -> float:
    """Train one net by one worker or four, and return its error on the rest."""
    values, labels = table(task)
    records = {"data": values[: task.trained], "label": labels[: task.trained]}
    steps = EPOCHS * task.trained // (BATCH * workers_of(arm))
    net = train_by(arm, solver(task, steps, seed), records, steps, seed)
    classes = np.argmax(net.forward({"data": values[task.trained :]})["prob"], axis=1)
    return float((classes != labels[task.trained :]).mean())


SEEDS = 5
ARMS = ("one worker", *STRATEGIES)


def statlog() -> Part:
    def spread(task: Task, arm: str) -> Spread:
        return Spread.of(error(task, arm, seed) for seed in range(1, SEEDS + 1))

    ours = MarkdownTable(
        ("data", *ARMS),
        [
            [task.name, *(TableCell(partial(spread, task, arm), 100) for arm in ARMS)]
            for task in TASKS
        ],
        f"**Ours.** Error in percent, by one worker and by {WORKERS} with as many samples in all:",
    )
    tables = [
        MarkdownTable(
            [task.name, *task.published],
            [["error in percent", *(f"{100 * value:.1f}" for value in task.published.values())]],
            "**The book's**, some of its rows:" if task is TASKS[0] else "",
        )
        for task in TASKS
    ]
    return Part("statlog", "StatLog, 1994: letters and a satellite's pixels", text, [ours, *tables])


def text() -> str:
    return (
        f"A net with two layers of {HIDDEN[0]} hidden units, {EPOCHS} epochs of Adam in batches of "
        f"{BATCH}. The split is the book's: 15,000 letters to train on and 5,000 to test, 4,435 "
        f"pixels and 2,000. A cell is a mean over {SEEDS} seeds ± its standard error. The data lie "
        "in Debian's r-cran-mlbench: `apt-get install r-cran-mlbench` and `pip install rdata`. The "
        "published errors are those of the project's own records (the data set Meta-data of UCI); "
        "the book itself was not at hand."
    )
