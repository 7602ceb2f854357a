"""Tell defective solar cells from good ones by pictures of the light that they give, on Spark.

    pip install elpv-dataset
    python examples/solar.py [workers] [seeds] [epochs]
    spark-submit examples/solar.py …

elpv-dataset brings 2,624 pictures of real cells (Deitsch et al., arXiv 1807.02894; free of charge
for uses that are not commercial: CC BY-NC-SA 4.0).  As in the paper three quarters are learned,
and a cell is defective if its probability is above one half; each seed is another split, and what
follows was chosen on one that is none of them.  A net of six convolutions with BatchNorm learns
turned and mirrored copies, from random weights.  A support vector machine reads histograms of
gradients, quantiles and the spectrum.  In the paper an SVM of key points reached
82.4 %, and a VGG-19 that had learned from ImageNet 88.4 %.
"""

from __future__ import annotations

import csv
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from trials import against, head, row

from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
from sparknet.dsl import (
    Accuracy,
    BatchNorm,
    Concat,
    Convolution,
    Dropout,
    Pooling,
    Power,
    ReLU,
    Scale,
)
from sparknet.native.transform import resize_image
from sparknet.spark import Trainer, get_session

SIDE, BATCH, EPOCHS, CELL, BINS = 64, 32, 4, 16, 9
DETAIL = 96
"""The side of the pictures that the support vector machine reads."""


def cells() -> tuple[Any, Any, Any]:
    """Pictures, whether each is defective, and the kind of cell and grade that splits keep."""
    from PIL import Image

    found = find_spec("elpv_dataset")
    if found is None or found.origin is None:
        raise SystemExit("the pictures come with elpv-dataset: pip install elpv-dataset")
    folder = Path(found.origin).parent / "data"
    with (folder / "labels.csv").open() as lines:
        rows = list(csv.reader(lines, delimiter=" ", skipinitialspace=True))
    pictures = []
    for name, *_ in rows:
        with Image.open(folder / name) as picture:
            pictures.append(resize_image(np.asarray(picture.convert("L")), DETAIL, DETAIL))
    chances = np.array([float(row[1]) for row in rows])
    kinds = np.array([f"{row[2]} {chance:.1f}" for row, chance in zip(rows, chances, strict=True)])
    return np.stack(pictures), chances > 0.5, kinds


def gradients(values: Any, cell: int, least: float) -> Any:
    """Histograms of the gradients' directions in square cells, in blocks of 2 x 2 cells that have
    one norm; ``least`` keeps blocks without gradients small.
    """
    count, cells = len(values), values.shape[1] // cell
    down, across = np.gradient(values, axis=(1, 2))
    angles = np.arctan2(down, across) % np.pi / np.pi * BINS
    found = np.empty((count, cells, cells, BINS), np.float32)
    for one in range(BINS):
        apart = abs(angles - one)
        weight = np.hypot(down, across) * np.maximum(1 - np.minimum(apart, BINS - apart), 0)
        found[..., one] = weight.reshape(count, cells, cell, cells, cell).sum((2, 4))
    corners = [found[:, y : cells - 1 + y, x : cells - 1 + x] for y in (0, 1) for x in (0, 1)]
    blocks = np.concatenate(corners, -1)
    return (blocks / np.sqrt((blocks**2).sum(-1, keepdims=True) + least)).reshape(count, -1)


def described(pictures: Any) -> Any:
    """What the support vector machine reads."""
    values = pictures.astype(np.float32)
    count = len(values)
    flat = values.reshape(count, -1)
    spectrum = np.log1p(abs(np.fft.rfft2(values - values.mean((1, 2), keepdims=True))))
    return np.hstack(
        [
            gradients(values, CELL, 1),
            np.percentile(flat, [1, 5, 10, 25, 50, 75, 90, 95, 99], axis=1).T,
            spectrum[:, :24, :24].reshape(count, -1),
            flat.std(1, keepdims=True),
        ]
    )


def block(name: str, below: str, filters: int, size: int = 3, stride: int = 1) -> list[Any]:
    shape: dict[str, Any] = {"kernel_size": size, "pad": size // 2, "stride": stride}
    return [
        Convolution(
            name, below, num_output=filters, bias_term=False, weight_filler="msra", **shape
        ),
        BatchNorm(f"bn_{name}", name, in_place=True, moving_average_fraction=0.95),
        Scale(f"scale_{name}", name, in_place=True, bias_term=True),
        ReLU(f"relu_{name}", name, in_place=True),
    ]


net = NetParams(
    "solar",
    RDDLayer("data", shape=[BATCH, 1, SIDE, SIDE]),
    RDDLayer("label", shape=[BATCH]),
    Power("scaled", "data", scale=1 / 40, shift=-128 / 40),
    block("conv1", "scaled", 16, 5, 2),
    block("conv2", "conv1", 16),
    Pooling("pool1", "conv2", pool="MAX", kernel_size=2, stride=2),
    block("conv3", "pool1", 32),
    block("conv4", "conv3", 32),
    Pooling("pool2", "conv4", pool="MAX", kernel_size=2, stride=2),
    block("conv5", "pool2", 64),
    block("conv6", "conv5", 64),
    Pooling("mean", "conv6", pool="AVE", global_pooling=True),
    Pooling("largest", "conv6", pool="MAX", global_pooling=True),
    Concat("found", ["mean", "largest"]),
    Dropout("dropped", "found", dropout_ratio=0.5),
    LinearLayer("score", "dropped", num_outputs=2),
    Accuracy("accuracy", ["score", "label"], include="TEST"),
    SoftmaxWithLoss("loss", ["score", "label"]),
)


def prepared(pictures: Any) -> Any:
    """Smaller pictures, each with the mean 128 and the deviation 40."""
    small = np.stack([resize_image(one, SIDE, SIDE) for one in pictures]).astype(np.float32)
    mean, deviation = (of(small, axis=(1, 2), keepdims=True) for of in (np.mean, np.std))
    return np.rint(128 + 40 * (small - mean) / deviation).clip(0, 255).astype(np.uint8)


def table(spark: Any, pictures: Any, labels: Any, turns: int = 1) -> Any:
    """A row for each picture, and for each of its copies: turned by a quarter, and mirrored."""
    rows = [
        (np.rot90(one[:, ::-1] if turn > 3 else one, turn).tobytes(), int(label))
        for turn in range(turns)
        for one, label in zip(pictures, labels, strict=True)
    ]
    return spark.createDataFrame(rows, "data binary, label int").repartition(4).cache()


def main(workers: int = 2, seeds: int = 1, epochs: int = EPOCHS) -> tuple[float, float]:
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    spark = get_session(workers)
    pictures, labels, kinds = cells()
    features, small = described(pictures), prepared(pictures)
    machines, nets = [], []
    for seed in range(1, seeds + 1):
        everything = np.arange(len(labels))
        learn, test = train_test_split(
            everything, test_size=0.25, random_state=seed, stratify=kinds
        )
        machine = make_pipeline(StandardScaler(), SVC(C=3, class_weight="balanced"))
        machine.fit(features[learn], labels[learn])
        machines.append(float(machine.score(features[test], labels[test])))
        learned = table(spark, small[learn], labels[learn], turns=8)
        solver = SolverParams(
            net=net,
            type="Adam",
            base_lr=0.002,
            momentum=0.9,
            lr_policy="poly",
            power=1,
            max_iter=epochs * 8 * len(learn) // (BATCH * workers),
            random_seed=seed,
        )
        trainer = Trainer(solver, "allreduce", workers, seed=seed, validate_every=10**6)
        trained = trainer.fit(learned, table(spark, small[test], labels[test]))
        nets.append(trained.outcome.metrics["accuracy"])
    head("accuracy")
    (plain,) = row("features, support vectors", machines)
    (ours,) = row("convolutions", nets)
    against(machines, nets)
    spark.stop()
    return plain, ours


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
