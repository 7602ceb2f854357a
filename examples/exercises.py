"""Tell which exercise a patient does from what a watch measures, on people never seen before.

    pip install seglearn
    python examples/exercises.py [seeds] [folds]

seglearn brings recordings of Burns et al. (arXiv 1802.01489, first version): ten people do seven
exercises of the shoulder, while a watch measures acceleration and turning 50 times a second.  A
convolutional net reads four seconds of them.  Each fold holds out two people.  Extremely
randomised trees read statistics of the same four seconds: moments, quantiles, the spectrum and
the correlations of the channels.  Both may learn from copies as well, as if the watch sat a little
askew; how many copies, epochs and trees there are is chosen for each fold on people of the others.
In the paper, whose folds are other pairs of people, a random forest was best with 87.3 %.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from trials import against, head, row

import sparknet
from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import Accuracy, BatchNorm, Convolution, Dropout, Pooling, ReLU, Scale

CHANNELS, LENGTH, STEP, FOLDS, EXERCISES = 6, 200, 50, 5, 7
BATCH, COPIES = 32, 3
Setting = tuple[int, int]
"""Turned copies of the movements, and epochs or trees."""
TREES: tuple[Setting, ...] = ((0, 200), (3, 200), (3, 500))
NETS: tuple[Setting, ...] = ((0, 20), (3, 5))
TRIED = 1
"""How many of the other folds judge the settings for a fold."""


def windows() -> tuple[Any, Any, Any, Any]:
    """Four seconds each: values, exercise, person, and whether a test takes it (every second)."""
    found = find_spec("seglearn")
    if found is None or found.origin is None:
        raise SystemExit("the recordings come with seglearn: pip install seglearn")
    file = Path(found.origin).parent / "data" / "watch_dataset.npy"
    data = np.load(file, allow_pickle=True).item()
    rows = [
        (values[start : start + LENGTH], exercise, person, start % (2 * STEP) == 0)
        for values, exercise, person in zip(data["X"], data["y"], data["subject"], strict=True)
        for start in range(0, len(values) - LENGTH + 1, STEP)
    ]
    values, exercises, people, tested = map(np.array, zip(*rows, strict=True))
    return values, exercises, people, tested


def turned(values: Any, random: np.random.Generator) -> Any:
    """The same movements, a little slower or faster, as a watch that sits askew measures them."""
    count = len(values)
    turns = np.linalg.qr(np.eye(3) + random.normal(0, 0.2, (count, 3, 3)))[0]
    turns *= np.sign(np.einsum("nii->ni", turns))[:, np.newaxis]
    axes = values.reshape(count, LENGTH, 2, 3) @ turns.transpose(0, 2, 1)[:, np.newaxis]
    return axes.reshape(values.shape) * random.uniform(0.85, 1.15, (count, 1, 1))


def statistics(values: Any) -> Any:
    """What the trees read."""
    centred = values - values.mean(1, keepdims=True)
    parts = [
        values.mean(1),
        values.std(1),
        (centred**3).mean(1),
        abs(np.diff(values, axis=1)).mean(1),
        *np.percentile(values, [0, 25, 50, 75, 100], axis=1),
        abs(np.fft.rfft(centred, axis=1))[:, 1:25].reshape(len(values), -1),
    ]
    upper = np.triu_indices(CHANNELS, 1)
    return np.hstack([*parts, [np.corrcoef(one.T)[upper] for one in values]])


def block(name: str, below: str, filters: int, size: int) -> list[Any]:
    shape: dict[str, Any] = {"kernel_h": size, "pad_h": size // 2, "kernel_w": 1, "pad_w": 0}
    return [
        Convolution(
            name,
            below,
            num_output=filters,
            stride_h=2,
            stride_w=1,
            bias_term=False,
            weight_filler="msra",
            **shape,
        ),
        BatchNorm(f"bn_{name}", name, in_place=True, moving_average_fraction=0.95),
        Scale(f"scale_{name}", name, in_place=True, bias_term=True),
        ReLU(f"relu_{name}", name, in_place=True),
    ]


net = NetParams(
    "exercises",
    RDDLayer("data", shape=[BATCH, CHANNELS, LENGTH // 2, 1]),
    RDDLayer("label", shape=[BATCH]),
    block("conv1", "data", 32, 9),
    block("conv2", "conv1", 32, 7),
    block("conv3", "conv2", 64, 5),
    block("conv4", "conv3", 64, 3),
    Pooling("mean", "conv4", pool="AVE", global_pooling=True),
    Dropout("dropped", "mean", dropout_ratio=0.5),
    LinearLayer("score", "dropped", num_outputs=EXERCISES),
    Accuracy("accuracy", ["score", "label"], include="TEST"),
    SoftmaxWithLoss("loss", ["score", "label"]),
)


def learned(given: tuple[Any, Any], held: tuple[Any, Any], seed: int, epochs: int) -> float:
    """The net's accuracy; it sees the mean of each two moments, scaled."""
    mean, deviation = given[0].mean((0, 1)), given[0].std((0, 1))

    def arrays(values: Any, labels: Any) -> dict[str, Any]:
        scaled = (values - mean) / deviation
        halved = scaled.reshape(len(values), LENGTH // 2, 2, CHANNELS).mean(2)
        data = halved.transpose(0, 2, 1)[..., np.newaxis].astype(np.float32)
        return {"data": data, "label": labels.astype(np.float32)}

    solver = SolverParams(
        net=net,
        type="Adam",
        base_lr=0.002,
        momentum=0.9,
        weight_decay=0.0002,
        lr_policy="poly",
        power=1,
        max_iter=epochs * len(given[0]) // BATCH,
        random_seed=seed,
    )
    trained = sparknet.train(
        solver, arrays(*given), validation=arrays(*held), validate_every=10**6, seed=seed, threads=1
    )
    return float(trained.outcome.metrics["accuracy"])


def grown(given: tuple[Any, Any], held: tuple[Any, Any], seed: int, trees: int) -> float:
    """The accuracy of the trees, which read statistics."""
    from sklearn.ensemble import ExtraTreesClassifier

    return float(ExtraTreesClassifier(trees, random_state=seed).fit(*given).score(*held))


def main(seeds: int = 1, folds: int = FOLDS) -> tuple[float, float]:
    values, labels, people, tested = windows()
    pairs = [np.isin(people, (2 * fold + 1, 2 * fold + 2)) for fold in range(FOLDS)]

    @cache
    def turns(seed: int) -> list[Any]:
        random = np.random.default_rng(seed)
        return [values, *(turned(values, random) for _ in range(COPIES))]

    @cache
    def described(seed: int) -> list[Any]:
        return [statistics(copy) for copy in turns(seed)]

    ways: dict[str, tuple[Any, Any, tuple[Setting, ...]]] = {
        "statistics, extra trees": (grown, described, TREES),
        "convolutions": (learned, turns, NETS),
    }

    def accuracy(name: str, setting: Setting, held: Any, seen: Any, seed: int) -> float:
        """On the people of a fold that is held out, after learning from others."""
        way, reads, _ = ways[name]
        copies, amount = setting
        every, test = reads(seed)[: copies + 1], held & tested
        given = np.concatenate([copy[seen] for copy in every]), np.tile(labels[seen], copies + 1)
        return float(way(given, (every[0][test], labels[test]), seed, amount))

    def choice(name: str, fold: int) -> Setting:
        """The best setting for a fold, by other folds, from people who are in neither."""
        judges = [pairs[(fold + step) % FOLDS] for step in range(1, TRIED + 1)]

        def score(setting: Setting) -> float:
            return sum(
                accuracy(name, setting, judge, ~(judge | pairs[fold]), 0) for judge in judges
            )

        settings = ways[name][2]
        return max(settings, key=score) if len(settings) > 1 else settings[0]

    every: list[list[float]] = []
    chosen = {name: [choice(name, fold) for fold in range(folds)] for name in ways}
    print(f"turned copies, and trees or epochs, of each fold: {chosen}")
    head("accuracy")
    for name, settings in chosen.items():
        found = [
            float(
                np.mean(
                    [
                        accuracy(name, one, held, ~held, seed)
                        for one, held in zip(settings, pairs, strict=False)
                    ]
                )
            )
            for seed in range(1, seeds + 1)
        ]
        row(name, found)
        every.append(found)
    plain, ours = every
    against(plain, ours)
    return float(np.mean(plain)), float(np.mean(ours))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
