"""Train LeNet on 1,797 real handwritten digits, by two workers that average their weights.

The digits come with scikit-learn; a fifth of them is held out.  The script writes a caffemodel, a
log and a plot to build/demo, or to the given folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import sparknet
from sparknet import (
    ActivationLayer,
    ConvLayer,
    LinearLayer,
    NetParams,
    PoolLayer,
    RDDLayer,
    SoftmaxWithLoss,
    SolverParams,
)
from sparknet.dsl import Accuracy
from sparknet.loaders import ArrayRecords, Subset
from sparknet.native.transform import resize_image
from sparknet.report import JsonLines, Progress, plot, together

BATCH, HELD_OUT = 32, 360
DEMO = Path(__file__).parents[1] / "build" / "demo"

net = NetParams(
    "lenet",
    RDDLayer("data", shape=[BATCH, 1, 28, 28]),
    RDDLayer("label", shape=[BATCH]),
    ConvLayer("conv1", "data", kernel=5, num_filters=20, weight_filler="xavier"),
    PoolLayer("pool1", "conv1", pool="max", kernel=2, stride=2),
    ConvLayer("conv2", "pool1", kernel=5, num_filters=50, weight_filler="xavier"),
    PoolLayer("pool2", "conv2", pool="max", kernel=2, stride=2),
    LinearLayer("ip1", "pool2", num_outputs=500, weight_filler="xavier"),
    ActivationLayer("relu1", "ip1", activation="relu", in_place=True),
    LinearLayer("ip2", "ip1", num_outputs=10, weight_filler="xavier"),
    Accuracy("accuracy", ["ip2", "label"], include="TEST"),
    SoftmaxWithLoss("loss", ["ip2", "label"]),
)
solver = SolverParams(
    net=net, base_lr=0.02, momentum=0.9, weight_decay=0.0005, lr_policy="fixed", random_seed=1
)


def digits() -> tuple[Any, Any]:
    """The digits to learn from and those that are held out: 28 x 28, values 0 to 1."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = [resize_image((image * 255 / 16).astype(np.uint8), 28, 28) for image in found.images]
    data = np.stack(images)[:, np.newaxis].astype(np.float32) / 255
    records = ArrayRecords(data=data, label=found.target.astype(np.float32))
    order = np.random.default_rng(0).permutation(len(records))
    return Subset(records, order[HELD_OUT:]), Subset(records, order[:HELD_OUT])


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "digits.jsonl"
    log.unlink(missing_ok=True)
    learned, held_out = digits()
    trained = sparknet.train(
        solver,
        learned,
        validation=held_out,
        workers=2,
        strategy="averaging",
        steps=300,
        validate_every=3,
        on_event=together(Progress(), JsonLines(log)),
    )
    trained.net.save(folder / "digits.caffemodel")
    plot(log, folder / "digits.svg")
    accuracy = trained.outcome.metrics["accuracy"]
    print(f"accuracy {accuracy:.2%} on {HELD_OUT} digits that were held out")
    print(f"{folder}: digits.caffemodel, digits.jsonl, digits.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEMO)
