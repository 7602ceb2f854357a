"""Fawaz et al. (2019), deep nets for time series: three nets on five data sets of the UCR archive.

    python -m benchmarks.papers.fawaz [--nets MLP …] [--data Coffee …] [--arms paper …] [--seeds 10]
        [--jobs 2] [--device cuda] [--seconds 600] [--store docs/experiments/fawaz.jsonl]

Nets, optimisers and schedules are those of the paper and of hfawaz/dl-4-tsc: Keras's Adam or
Adadelta, a rate that halves where the loss stands still, the weights of the epoch with the least
loss.  Each training is a line of the store, which a later call does not train again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import astuple, dataclass
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.digits import ROOT
from benchmarks.papers.strategies import STRATEGIES, train_by, workers_of
from benchmarks.papers.ucr import FILES, Rows, Series, series
from sparknet import (
    BatchNorm,
    ConvLayer,
    Crop,
    Dropout,
    Eltwise,
    LayerSpec,
    LinearLayer,
    Net,
    NetParams,
    Pooling,
    RDDLayer,
    ReLU,
    Scale,
    Softmax,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.native import set_threads

GLOROT = {"weight_filler": {"type": "xavier", "variance_norm": "AVERAGE"}}
"""Keras's initial weights."""


# -- nets ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recipe:
    """What the paper says of a net: its layers, its solver, epochs, the schedule."""

    layers: Callable[[int], list[LayerSpec]]
    solver: dict[str, Any]
    epochs: int
    largest_batch: int
    patience: int
    least_rate: float

    def batch(self, records: int) -> int:
        return int(min(records / 10, self.largest_batch))


def mlp(classes: int) -> list[LayerSpec]:
    layers = [Dropout("drop0", "data", dropout_ratio=0.1)]
    before = "drop0"
    for number, share in enumerate((0.2, 0.2, 0.3), 1):
        layers += [
            LinearLayer(f"fc{number}", before, num_outputs=500, **GLOROT),
            ReLU(f"relu{number}", f"fc{number}", in_place=True),
            Dropout(f"drop{number}", f"fc{number}", dropout_ratio=share, in_place=True),
        ]
        before = f"fc{number}"
    return [*layers, LinearLayer("score", before, num_outputs=classes, **GLOROT)]


def convolution(name: str, bottom: str, filters: int, width: int) -> list[LayerSpec]:
    """A convolution as long as its input, with batch normalisation; an even one is cut in front."""
    conv = ConvLayer(
        name if width % 2 else f"{name}_long",
        bottom,
        kernel=(1, width),
        num_filters=filters,
        pad=(0, width // 2),
        **GLOROT,
    )
    cut = [] if width % 2 else [Crop(name, [f"{name}_long", bottom], axis=3, offset=[1])]
    return [conv, *cut, *normalised(f"{name}_norm", name)]


def normalised(name: str, bottom: str) -> list[LayerSpec]:
    return [
        BatchNorm(name, bottom, moving_average_fraction=0.99, eps=1e-3),
        Scale(f"{name}_scale", name, in_place=True, bias_term=True),
    ]


def ending(bottom: str, classes: int) -> list[LayerSpec]:
    return [
        Pooling("pool", bottom, pool="AVE", global_pooling=True),
        LinearLayer("score", "pool", num_outputs=classes, **GLOROT),
    ]


def fcn(classes: int) -> list[LayerSpec]:
    layers: list[LayerSpec] = []
    before = "data"
    for name, filters, width in (("conv1", 128, 8), ("conv2", 256, 5), ("conv3", 128, 3)):
        layers += convolution(name, before, filters, width)
        before = f"{name}_norm"
        layers.append(ReLU(f"{name}_relu", before, in_place=True))
    return [*layers, *ending(before, classes)]


def resnet(classes: int) -> list[LayerSpec]:
    layers: list[LayerSpec] = []
    before = "data"
    for number, filters in enumerate((64, 128, 128), 1):
        bottom = before
        for letter, width in zip("xyz", (8, 5, 3), strict=True):
            name = f"conv{number}{letter}"
            layers += convolution(name, bottom, filters, width)
            bottom = f"{name}_norm"
            if letter != "z":
                layers.append(ReLU(f"{name}_relu", bottom, in_place=True))
        short = f"short{number}"
        if number < 3:
            layers += convolution(short, before, filters, 1)
        else:
            layers += normalised(f"{short}_norm", before)
        layers += [
            Eltwise(f"sum{number}", [f"{short}_norm", bottom]),
            ReLU(f"sum{number}_relu", f"sum{number}", in_place=True),
        ]
        before = f"sum{number}"
    return [*layers, *ending(before, classes)]


ADAM = {"type": "Adam", "base_lr": 0.001, "momentum": 0.9, "momentum2": 0.999, "delta": 1e-7}
ADADELTA = {"type": "AdaDelta", "base_lr": 1.0, "momentum": 0.95, "delta": 1e-7}
RECIPES = {
    "MLP": Recipe(mlp, ADADELTA, 5000, 16, 200, 0.1),
    "FCN": Recipe(fcn, ADAM, 2000, 16, 50, 1e-4),
    "ResNet": Recipe(resnet, ADAM, 1500, 64, 50, 1e-4),
}


def solver(kind: str, name: str, seed: int) -> SolverParams:
    data, recipe = series(name), RECIPES[kind]
    batch, length = recipe.batch(len(data.train)), data.train.shape[1]
    layers = (
        RDDLayer("data", shape=[batch, 1, 1, length]),
        RDDLayer("label", shape=[batch]),
        *recipe.layers(data.classes),
        SoftmaxWithLoss("loss", ["score", "label"]),
        Softmax("prob", "score", phase="TEST"),
    )
    net = NetParams(kind.lower(), *layers)
    return SolverParams(net=net, lr_policy="fixed", random_seed=seed, **recipe.solver)


# -- trainings ---------------------------------------------------------------------------------


ARMS = ("paper", "alone", *STRATEGIES)
"""By the paper's rules; one worker with a fixed rate and its last weights; four such workers."""


@dataclass(frozen=True)
class Training:
    kind: str
    data: str
    arm: str
    seed: int

    def run(self, device: str | None = None, epochs: int | None = None) -> float:
        """Return the accuracy on the test set."""
        data, epochs = series(self.data), epochs or RECIPES[self.kind].epochs
        train = self._by_the_paper if self.arm == "paper" else self._by_a_strategy
        scores = train(data, device, epochs).forward({"data": _as_images(data.test)})["prob"]
        return float((np.argmax(scores, axis=1) == data.test_labels).mean())

    def _by_the_paper(self, data: Series, device: str | None, epochs: int) -> Net:
        recipe = RECIPES[self.kind]
        net = Net(solver(self.kind, self.data, self.seed), device=device)
        draw, best, weights = np.random.default_rng(self.seed), np.inf, net.get_weights()
        rate = Plateau(float(net.solver.param.base_lr), recipe.patience, recipe.least_rate)
        for _ in range(epochs):
            loss = train_epoch(net, data, batches(recipe, data, draw))
            if loss < best:
                best, weights = loss, net.get_weights().copy()
            net.solver.param.base_lr = rate.after(loss)
        net.set_weights(weights)
        return net

    def _by_a_strategy(self, data: Series, device: str | None, epochs: int) -> Net:
        return train_by(
            self.arm,
            solver(self.kind, self.data, self.seed),
            {"data": _as_images(data.train), "label": data.train_labels},
            epochs
            * len(data.train)
            // (RECIPES[self.kind].batch(len(data.train)) * workers_of(self.arm)),
            self.seed,
            device=device,
        )


def batches(recipe: Recipe, data: Series, draw: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return the rows of each batch of an epoch; the last may be smaller."""
    count = recipe.batch(len(data.train))
    order = draw.permutation(len(data.train))
    return np.split(order, range(count, len(order), count))


def train_epoch(net: Net, data: Series, parts: Sequence[NDArray[np.int64]]) -> float:
    """Train over all batches, and return the mean loss of the records."""
    put, loss = net.feed(["data", "label"]), 0.0
    for rows in parts:
        batch = {"data": _as_images(data.train[rows]), "label": data.train_labels[rows]}
        loss += net.compute_gradients(partial(put, batch, 0)) * len(rows)
        net.apply_update()
    return loss / sum(map(len, parts))


@dataclass
class Plateau:
    """Keras's ReduceLROnPlateau: half the rate after so many epochs without a lower loss."""

    rate: float
    patience: int
    least: float
    lowest: float = np.inf
    waited: int = 0

    def after(self, loss: float) -> float:
        if loss < self.lowest - 1e-4:
            self.lowest, self.waited = loss, 0
        else:
            self.waited += 1
        if self.waited >= self.patience:
            self.rate, self.waited = max(self.rate / 2, self.least), 0
        return self.rate


def _as_images(rows: Rows) -> Rows:
    return rows[:, None, None, :]


# -- many of them ------------------------------------------------------------------------------

STORE = ROOT / "docs" / "experiments" / "fawaz.jsonl"


def stored(path: Path = STORE) -> dict[Training, float]:
    """Return the accuracies of the trainings so far."""
    return {
        Training(*row["training"]): row["accuracy"] for row in rows_of(path) if "training" in row
    }


def rows_of(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text().splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines]


def measure(training: Training, device: str | None, epochs: int | None) -> dict[str, Any]:
    set_threads(1)
    begin = time.monotonic()
    accuracy = training.run(device, epochs)
    seconds = round(time.monotonic() - begin, 1)
    return {
        "training": astuple(training),
        "accuracy": accuracy,
        "seconds": seconds,
        "device": device or "native",
    }


def fill(
    wanted: Sequence[Training],
    store: Path = STORE,
    jobs: int | None = None,
    device: str | None = None,
    epochs: int | None = None,
    seconds: float | None = None,
) -> None:
    """Make the trainings that are not in the store; after so many seconds stop."""
    before = stored(store)
    store.parent.mkdir(parents=True, exist_ok=True)
    pool = ProcessPoolExecutor(jobs or os.cpu_count(), get_context("spawn"))
    missing = [training for training in wanted if training not in before]
    futures = [pool.submit(measure, training, device, epochs) for training in missing]
    with suppress(TimeoutError), store.open("a") as file:
        for future in as_completed(futures, seconds):
            line = json.dumps(future.result())
            print(line, file=file, flush=True)
            print(line, file=sys.stderr, flush=True)
    for process in list(pool._processes.values()):
        process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nets", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--data", nargs="+", choices=FILES, default=list(FILES))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=["paper"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, help="processes at once; unless given, one a core")
    parser.add_argument("--device")
    parser.add_argument("--epochs", type=int, help="fewer than the paper's, to try it")
    parser.add_argument("--seconds", type=float, help="after them it ends")
    parser.add_argument("--store", type=Path, default=STORE)
    chosen = vars(parser.parse_args())
    arms, seeds = chosen.pop("arms"), range(1, chosen.pop("seeds") + 1)
    cells = product(arms, seeds, chosen.pop("data"), chosen.pop("nets"))
    fill([Training(kind, data, arm, seed) for arm, seed, data, kind in cells], **chosen)


if __name__ == "__main__":
    main()
