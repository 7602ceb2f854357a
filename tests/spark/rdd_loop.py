"""SparkNet's loop on a cluster; one executor is killed in the middle, and the nets are counted."""

import json
import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.spark.cluster import parent
from tests.spark.driver import SETTINGS
from tests.spark.test_net_rdd import ROUNDS, STEPS, nets_of, once


def main(url: str, mark: str) -> None:
    builder = SparkSession.builder.master(url)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    nets = nets_of(builder.getOrCreate())

    def step(net):
        if net.iter == STEPS * ROUNDS // 2:  # of the executor: a worker's parent's parent
            once(Path(mark), lambda: os.kill(parent(os.getppid()), signal.SIGKILL))
        net.train(STEPS)
        return net.get_weights()

    for _ in range(ROUNDS):
        weights = nets.map(step).mean()
        nets.map(lambda net, weights=weights: net.set_weights(weights))
    told = [[status.built, status.lost, status.iteration] for status in nets.status]
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
