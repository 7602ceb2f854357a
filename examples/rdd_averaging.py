"""SparkNet's loop (Moritz et al., ICLR 2016, Listing 3): that of the paper, and of its programs.

Each round broadcasts the weights, trains some steps on every partition, and averages.
`sparknet.spark.Trainer` does the same in one stage.

    python examples/rdd_averaging.py [rounds] [mean|reduce]
    spark-submit examples/rdd_averaging.py [rounds] [mean|reduce]
"""

from __future__ import annotations

import sys
from operator import add
from typing import Any

from digits import digits, solver

from sparknet import Net, WeightCollection
from sparknet.spark import NetRDD, get_session, net_rdd

WORKERS, STEPS = 2, 10


def main(rounds: int, form: str = "mean") -> float:
    context = get_session(WORKERS).sparkContext
    learned, held_out = (part.take(slice(0, len(part))) for part in digits())
    records = list(zip(learned["data"], learned["label"], strict=True))
    train_data = context.parallelize(records, WORKERS)
    nets = net_rdd(train_data, make)  # the paper's foreachPartition; Spark's own returns None
    round_of = {"mean": listing, "reduce": application}[form]
    net = Net(solver)
    net.set_validation_data(held_out)
    weights = net.get_weights()

    for number in range(1, rounds + 1):
        broadcast_weights = context.broadcast(weights)
        weights = round_of(nets, broadcast_weights)
        broadcast_weights.destroy()
        net.set_weights(weights)
        print(f"round {number}: accuracy {net.test()['accuracy']:.2%}")

    for status in nets.status:
        print(status)
    return net.test()["accuracy"]


def make(data: Any) -> Net:
    """Return a net with a partition's records."""
    net = Net(solver)
    net.set_training_data(data)
    return net


def train(net: Net) -> WeightCollection:
    net.train(STEPS)
    return net.get_weights()


def listing(nets: NetRDD, broadcast_weights: Any) -> WeightCollection:
    """Make a round as the paper has it."""
    nets.map(lambda net: net.set_weights(broadcast_weights.value))
    return nets.map(train).mean()  # an average of WeightCollections


def application(nets: NetRDD, broadcast_weights: Any) -> WeightCollection:
    """Make a round as SparkNet's programs have it."""
    nets.foreach(lambda net: net.set_weights(broadcast_weights.value))
    nets.foreach(lambda net: net.train(STEPS))
    return nets.map(lambda net: net.get_weights()).reduce(add) / WORKERS


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, *sys.argv[2:])
