"""Train a small convolutional net on CIFAR-10 as a DataFrame, by all-reduce.

    python examples/cifar10_spark.py [folder with data_batch_1.bin … test_batch.bin] [steps]
    spark-submit examples/cifar10_spark.py …

Without a folder it trains on 2,000 coloured shapes that it draws.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from sparknet import (
    ActivationLayer,
    ConvLayer,
    LinearLayer,
    NetParams,
    PoolLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.dsl import Accuracy, MemoryData
from sparknet.loaders import ArrayRecords, open_records
from sparknet.report import Progress
from sparknet.spark import Trainer, get_session, read_records

WORKERS, BATCH = 2, 50
SCALED = {"mean_value": 128, "scale": 1 / 64}

net = NetParams(
    "cifar10",
    MemoryData(
        "data",
        tops=["data", "label"],
        batch_size=BATCH,
        channels=3,
        height=32,
        width=32,
        transform_param=SCALED,
    ),
    ConvLayer("conv1", "data", kernel=5, pad=2, num_filters=32, weight_filler="msra"),
    PoolLayer("pool1", "conv1", pool="max", kernel=3, stride=2),
    ActivationLayer("relu1", "pool1", activation="relu", in_place=True),
    ConvLayer("conv2", "pool1", kernel=5, pad=2, num_filters=32, weight_filler="msra"),
    ActivationLayer("relu2", "conv2", activation="relu", in_place=True),
    PoolLayer("pool2", "conv2", pool="ave", kernel=3, stride=2),
    LinearLayer("ip1", "pool2", num_outputs=10, weight_filler="msra"),
    Accuracy("accuracy", ["ip1", "label"], include="TEST"),
    SoftmaxWithLoss("loss", ["ip1", "label"]),
)
solver = SolverParams(net=net, base_lr=0.005, momentum=0.9, lr_policy="fixed", random_seed=1)


def main(folder: Path | None, steps: int) -> float:
    spark = get_session(WORKERS)
    learned, held_out = (read_records(spark, part) for part in (files(folder) or shapes()))
    trainer = Trainer(solver, "allreduce", WORKERS, steps=steps, on_event=Progress())
    trained = trainer.fit(learned, held_out)
    accuracy = trained.outcome.metrics["accuracy"]
    print(f"accuracy {accuracy:.2%}")
    spark.stop()
    return accuracy


def files(folder: Path | None) -> tuple[Any, Any] | None:
    if folder is None:
        return None
    training = [str(path) for path in sorted(folder.glob("data_batch_*.bin"))]
    return open_records(training), open_records(str(folder / "test_batch.bin"))


def shapes(seed: int = 0) -> tuple[Any, Any]:
    """Squares and bars of five colours each on noise: ten classes."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, 2000)
    images = random.integers(60, 196, (2000, 3, 32, 32), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        row, column = random.integers(0, 16, 2)
        high, wide = (12, 12) if label < 5 else (4, 16)
        color = np.array([label % 5 & 1, label % 5 & 2, label % 5 & 4]) > 0
        image[:, row : row + high, column : column + wide] = 255 * color[:, None, None]
    whole = ArrayRecords(data=images, label=labels)
    parts = whole.take(slice(0, 1700)), whole.take(slice(1700, 2000))
    return ArrayRecords(**parts[0]), ArrayRecords(**parts[1])


if __name__ == "__main__":
    words = sys.argv[1:]
    given = Path(words.pop(0)) if words and not words[0].isdecimal() else None
    main(given, int(words[0]) if words else 60)
