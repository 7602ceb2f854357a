"""SparkNet's loop (Moritz et al., ICLR 2016, Listing 3) in plain RDD calls.

Each round broadcasts the weights, trains some steps on every partition, and averages.  Spark's
serialisation takes a few seconds per round; `sparknet.spark.Trainer` does the same in one stage.

    python examples/rdd_averaging.py [rounds]
    spark-submit examples/rdd_averaging.py [rounds]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from digits import digits, solver
from pyspark import Broadcast

from sparknet import Net, WeightCollection
from sparknet.spark import cached, get_session, tree_mean

WORKERS, STEPS = 2, 10
Record = tuple[np.ndarray, float]


def main(rounds: int) -> float:
    context = get_session(WORKERS).sparkContext
    learned, held_out = (part.take(slice(0, len(part))) for part in digits())
    records = list(zip(learned["data"], learned["label"], strict=True))
    data = context.parallelize(records, WORKERS).cache()
    net = Net(solver)
    net.set_validation_data(held_out)

    for number in range(1, rounds + 1):
        weights = context.broadcast(net.get_weights())

        trained = data.mapPartitionsWithIndex(partial(train, weights))
        net.set_weights(tree_mean(trained))
        weights.destroy()
        print(f"round {number}: accuracy {net.test()['accuracy']:.2%}")
    return net.test()["accuracy"]


def train(
    weights: Broadcast[WeightCollection], part: int, records: Iterable[Record]
) -> Iterator[WeightCollection]:
    """Train some steps on one partition, from the broadcast weights."""
    net = cached(("rdd_averaging", part), lambda: worker(records))
    net.set_weights(weights.value)
    net.train(STEPS)
    yield net.get_weights()


def worker(records: Iterable[Record]) -> Net:
    """A net with a partition's records; Spark's Python workers keep it between rounds."""
    net = Net(solver)
    net.set_training_data(list(records))
    return net


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
