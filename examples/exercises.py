"""Tell which exercise a patient does from what a watch measures, on people never seen before.

    pip install seglearn
    python examples/exercises.py [seeds] [folds]

seglearn brings recordings of Burns et al. (arXiv 1802.01489, first version): ten people do seven
exercises of the shoulder, while a watch measures acceleration and turning 50 times a second.  A
convolutional net reads four seconds of them.  Each fold holds out two people.  Extremely
randomised trees read statistics of the same four seconds: moments, quantiles, the spectrum and
the correlations of the channels.  Both learn from copies as well, as if the watch sat a little
askew.  In the paper, whose folds are other pairs of people, a random forest was best with 87.3 %.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from trials import head, row

import sparknet
from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import Accuracy, BatchNorm, Convolution, Dropout, Pooling, ReLU, Scale

CHANNELS, LENGTH, STEP, FOLDS, EXERCISES = 6, 200, 50, 5, 7
BATCH, EPOCHS, COPIES, TREES = 32, 5, 3, 200


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
        solver, arrays(*given), validation=arrays(*held), validate_every=10**6, seed=seed
    )
    return float(trained.outcome.metrics["accuracy"])


def main(seeds: int = 1, folds: int = FOLDS, epochs: int = EPOCHS) -> tuple[float, float]:
    from sklearn.ensemble import ExtraTreesClassifier

    values, labels, people, tested = windows()
    trees, nets = [], []
    for seed in range(1, seeds + 1):
        random, accuracies = np.random.default_rng(seed), []
        copies = [values, *(turned(values, random) for _ in range(COPIES))]
        features = [statistics(copy) for copy in copies]
        for fold in range(folds):
            held = np.isin(people, (2 * fold + 1, 2 * fold + 2))
            test, truth = held & tested, np.tile(labels[~held], len(copies))
            forest = ExtraTreesClassifier(TREES, random_state=seed)
            forest.fit(np.concatenate([copy[~held] for copy in features]), truth)
            given = np.concatenate([copy[~held] for copy in copies]), truth
            ours = learned(given, (values[test], labels[test]), seed, epochs)
            accuracies.append((forest.score(features[0][test], labels[test]), ours))
        both = np.mean(accuracies, 0)
        trees.append(float(both[0]))
        nets.append(float(both[1]))
    head("accuracy")
    (plain,) = row("statistics, extra trees", trees)
    (net_alone,) = row("convolutions", nets)
    return plain, net_alone


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
