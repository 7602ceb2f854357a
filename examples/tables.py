"""Train on tables as TensorSpark did, collisions and molecules, beside gradient-boosted trees.

    python examples/tables.py [workers] [events] [compounds] [seeds]

Both tables are drawn.  Each column alone says little of the label, as in the ones they stand
for: a collision is a decay if two of its particles together have the mass of a heavy one, and a
molecule is active if it has one of two groups of atoms but not both.  A deep net finds such
combinations, a "wide and deep" one (Cheng et al., arXiv 1606.07792) beside what each column says
alone.  Who knows what makes a decay adds the mass of both particles as a column.  The trees have as
many rounds as a held-out tenth of the rows asks for, and as many leaves as it liked best.  At last
the net's features find molecules that are alike.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from trials import against, head, row

from sparknet import LinearLayer, NetParams, RDDLayer, ReLU, SoftmaxWithLoss, SolverParams
from sparknet.dsl import Eltwise
from sparknet.spark import get_session
from sparknet.spark.pipeline import NetEstimator, NetFeaturizer

ATOMS, GROUPS, BITS, NEAREST = 512, 4, 24, 5
TREES = {"collisions": (31, 0.1), "collisions, with masses": (7, 0.1), "molecules": (63, 0.05)}
"""Leaves and learning rate: the best of 7, 15, 31 and 63 with 0.1 and 0.05 on the tenth of the rows
that ends the training, with the first seed; of molecules, whose trees take long, of fewer."""


def decays(random: np.random.Generator, count: int) -> list[Any]:
    """The two particles into which one of mass 125 falls: log momentum, pseudorapidity, angle."""
    mass = random.normal(125, 6, count)
    cosine, angle = random.uniform(-1, 1, count), random.uniform(-np.pi, np.pi, count)
    sine = np.sqrt(1 - cosine**2)
    half = np.stack([sine * np.cos(angle), sine * np.sin(angle), cosine]) * mass / 2
    speed, turn = random.exponential(60, count), random.uniform(-np.pi, np.pi, count)
    heavy = np.stack([speed * np.cos(turn), speed * np.sin(turn), random.normal(0, 80, count)])
    energy = np.sqrt(mass**2 + (heavy**2).sum(0))
    found = []
    for one in (half, -half):
        along = (heavy * one).sum(0) / (mass * (energy + mass)) + 0.5
        x, y, z = one + along * heavy
        across = np.hypot(x, y)
        found.append(np.stack([np.log(across / 50), np.arcsinh(z / across), np.arctan2(y, x)], 1))
    return found


def collisions(random: np.random.Generator, count: int) -> tuple[Any, Any, Any]:
    """21 numbers of each event, of which 6 matter; an event that is none mixes two decays."""
    label = random.integers(0, 2, count)
    one, two = decays(random, count)
    two = np.where(label[:, None] == 1, two, two[random.permutation(count)])
    return np.hstack([one, two, random.normal(size=(count, 15))]), label, label


def collisions_with_mass(random: np.random.Generator, count: int) -> tuple[Any, Any, Any]:
    """The same, and the logarithm of the mass that the two particles have together."""
    values, label, kind = collisions(random, count)
    (log1, high1, turn1), (log2, high2, turn2) = values[:, :3].T, values[:, 3:6].T
    square = np.exp(log1 + log2) * (np.cosh(high1 - high2) - np.cos(turn1 - turn2))
    return np.hstack([values, np.log(np.maximum(square, 1e-6))[:, np.newaxis]]), label, kind


def molecules(random: np.random.Generator, count: int) -> tuple[Any, Any, Any]:
    """512 bits of each; any of 24 bits shows a group of atoms.  The third are the groups."""
    bits = (random.random((count, ATOMS)) < 0.03).astype(np.uint8)
    bits[:, : GROUPS * BITS] = 0
    has = random.random((count, GROUPS)) < (0.5, 0.5, 0.25, 0.5)
    for group in range(GROUPS):
        rows = np.flatnonzero(has[:, group])
        bits[rows, group * BITS + random.integers(0, BITS, len(rows))] = 1
    label = (has[:, 0] ^ has[:, 1]) & ~has[:, 2] ^ (random.random(count) < 0.02)
    shuffled = np.random.default_rng(7).permutation(ATOMS)
    return bits[:, shuffled], label.astype(int), has[:, :3] @ (1, 2, 4)


def net(columns: int, hidden: int, is_wide: bool) -> NetParams:
    layers: list[Any] = [RDDLayer("data", shape=[50, columns]), RDDLayer("label", shape=[50])]
    top = "data"
    for number in range(3):
        name = f"deep{number}"
        layers.append(LinearLayer(name, top, num_outputs=hidden, weight_filler="msra"))
        layers.append(ReLU(top := f"relu{number}", name))
    layers.append(LinearLayer("score", top, num_outputs=2, weight_filler="xavier"))
    if is_wide:
        layers.append(LinearLayer("wide", "data", num_outputs=2, weight_filler="xavier"))
        layers.append(Eltwise("both", ["score", "wide"], operation="SUM"))
    last = "both" if is_wide else "score"
    return NetParams("table", *layers, SoftmaxWithLoss("loss", [last, "label"]))


def learn(
    spark: Any,
    drawn: tuple[Any, Any, Any],
    made: NetParams,
    decay: float,
    leaves: tuple[int, float],
    workers: int,
    seed: int,
) -> list[float]:
    """Areas under the ROC curve of net and trees, and shares of nearest rows of the same kind.

    One tenth of the rows ends the training early, of the net and of the trees; another one judges.
    """
    import pandas as pd
    from sklearn.metrics import roc_auc_score

    values, label, kind = drawn
    values, tenth = values.astype(np.float32), np.arange(len(label)) % 10
    rows = {"features": list(values), "label": label, "kind": kind, "tenth": tenth}
    table = spark.createDataFrame(pd.DataFrame(rows).assign(held=tenth == 8)).cache()
    solver = SolverParams(
        net=made, type="Adam", base_lr=0.001, momentum=0.9, lr_policy="fixed", random_seed=seed
    )
    estimator = NetEstimator(
        solver,
        workers=workers,
        weight_decay=decay,
        epochs=30,
        patience=10,
        class_weights="balanced",
        validationIndicatorCol="held",
        seed=seed,
    )
    model = estimator.fit(table.where("tenth < 9"))
    featurizer = NetFeaturizer(model.model, inputCol="features", outputCol="deep", output="relu2")
    tested = featurizer.transform(model.transform(table.where("tenth = 9")))
    columns = ("label", "kind", "features", "deep", "probability")
    found = {name: np.array([*tested.toPandas()[name]]) for name in columns}
    parts = [(values[rows], label[rows]) for rows in (tenth < 8, tenth == 8, tenth == 9)]
    guessed = trees(*parts[0], *parts[1], *leaves, seed).predict_proba(parts[2][0])[:, 1]
    return [
        float(roc_auc_score(found["label"], found["probability"][:, 1])),
        float(roc_auc_score(parts[2][1], guessed)),
        alike(found["deep"], found["kind"]),
        alike(found["features"], found["kind"]),
    ]


def trees(values: Any, label: Any, new: Any, true: Any, leaves: int, rate: float, seed: int) -> Any:
    """As many as are best on the new rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=1500,
        n_iter_no_change=100,
        max_leaf_nodes=leaves,
        learning_rate=rate,
        early_stopping=True,
        random_state=seed,
    ).fit(values, label, X_val=new, y_val=true)


def alike(features: Any, kinds: Any) -> float:
    """How many of a row's nearest, by the cosine, are of its kind."""
    length = np.linalg.norm(features, axis=1, keepdims=True)
    near = (features / np.maximum(length, 1e-12)).astype(np.float32)
    product = near @ near.T
    np.fill_diagonal(product, -np.inf)
    nearest = np.argpartition(-product, NEAREST)[:, :NEAREST]
    return float(np.mean(kinds[nearest] == kinds[:, None]))


def main(
    workers: int = 2, events: int = 50_000, compounds: int = 20_000, seeds: int = 1
) -> list[list[float]]:
    spark = get_session(workers)
    tables: dict[str, tuple[Any, int, NetParams, float]] = {
        "collisions": (collisions, events, net(21, 128, is_wide=False), 0.0003),
        "collisions, with masses": (
            *(collisions_with_mass, events, net(22, 128, is_wide=False), 0.0003),
        ),
        "molecules": (molecules, compounds, net(ATOMS, 64, is_wide=True), 0.003),
    }
    print(f"areas under the ROC curve; shares of the nearest {NEAREST} that are of a row's kind")
    head("net", "trees", "by features", "by columns")
    found = []
    for name, (draw, count, made, decay) in tables.items():
        tries = []
        for seed in range(seeds):
            drawn = draw(np.random.default_rng(seed), count)
            tries.append(learn(spark, drawn, made, decay, TREES[name], workers, seed + 1))
        found.append(row(name, tries, ".3f"))
        against([plain for _, plain, *_ in tries], [ours for ours, *_ in tries], scale=1)
    spark.stop()
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
