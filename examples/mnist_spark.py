"""Train LeNet on an RDD of (image, label): MNIST's files, or scikit-learn's digits.

    python examples/mnist_spark.py [images labels] [steps]
    spark-submit examples/mnist_spark.py [images labels] [steps]

A tenth of the records is held out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from digits import digits, net

from sparknet import SolverParams
from sparknet.loaders import Chain, open_records
from sparknet.report import Progress
from sparknet.spark import Trainer, get_session

WORKERS = 2
Record = tuple[np.ndarray, int]

solver = SolverParams(
    net=net, base_lr=0.01, momentum=0.9, weight_decay=0.0005, lr_policy="fixed", random_seed=1
)


def main(files: list[str], steps: int) -> float:
    context = (spark := get_session(WORKERS)).sparkContext
    data = context.parallelize(list(records(files)), 2 * WORKERS)
    numbered = data.zipWithIndex().cache()
    learned = numbered.filter(lambda pair: pair[1] % 10 != 0).keys()
    held_out = numbered.filter(lambda pair: pair[1] % 10 == 0).keys()
    trainer = Trainer(solver, "slowmo", WORKERS, steps=steps, on_event=Progress())
    trained = trainer.fit(learned, held_out)
    accuracy = trained.outcome.metrics["accuracy"]
    print(f"accuracy {accuracy:.2%}")
    spark.stop()
    return accuracy


def records(files: list[str]) -> Iterator[Record]:
    source = open_records(*files) if files else Chain(digits())
    taken = source.take(slice(0, len(source)))
    scale = 255 if taken["data"].dtype == np.uint8 else 1
    for image, label in zip(taken["data"], taken["label"], strict=True):
        yield image.reshape(1, 28, 28).astype(np.float32) / scale, int(label)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(words[:2] if len(words) > 1 else [], int(words[-1]) if len(words) % 2 else 200)
