"""Measures what Spark adds to training: LeNet by one worker on Spark, and in a plain process.

    python -m benchmarks.spark_overhead [--steps 2000] [--threads 2] [--times 3]

In turn, with as many threads on both sides and the same batches in the same order: Net.train
over the digits in memory, and Trainer(workers=1) over a DataFrame of them.  The time is
that of the steps, without starting Spark, reading records and building the net; the time of the
whole `fit` is printed as well.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.digits import TRAINED, records
from benchmarks.papers.dynamic import solver
from benchmarks.spark_strategies import frame
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import Records
from sparknet.native import set_threads
from sparknet.net import Net
from sparknet.spark import Trainer, local_session

Weights = np.ndarray[Any, Any]


def plain(digits: Records, steps: int) -> tuple[float, Weights]:
    """Seconds of the steps in this process, and the weights after them."""
    net = Net(solver())
    with Batches(digits, net.batch_size, Order(len(digits))) as batches:
        net.set_training_data(batches)
        begun = time.perf_counter()
        net.train(steps)
        return time.perf_counter() - begun, np.array(net.get_weights().flat)


def on_spark(data: Any, steps: int) -> tuple[float, float, Weights]:
    """Seconds of the steps, seconds of the whole `fit`, and the weights."""
    begun = time.perf_counter()
    trained = Trainer(solver(), workers=1, steps=steps).fit(data)
    whole = time.perf_counter() - begun
    return trained.history[-1]["total_seconds"], whole, np.asarray(trained.weights.flat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=2, help="of each side")
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    set_threads(asked.threads)
    session = local_session(1, threads=asked.threads)
    part = slice(0, TRAINED)
    digits, data = records(part), frame(session, part)
    plain(digits, 100), on_spark(data, 100)
    here, there, whole = [], [], []
    for _ in range(asked.times):
        seconds, weights = plain(digits, asked.steps)
        here.append(seconds)
        seconds, fit, trained = on_spark(data, asked.steps)
        there.append(seconds)
        whole.append(fit)
        print(f"{here[-1]:.2f} s plain, {seconds:.2f} s on Spark", file=sys.stderr)
    session.stop()
    print(f"LeNet, {asked.steps} steps of 64 digits, {asked.threads} threads, {asked.times} times")
    print(f"  plain                {_range(here)} s")
    print(f"  one worker on Spark  {_range(there)} s")
    print(f"  the whole of fit     {_range(whole)} s")
    pairs = zip(there, here, strict=True)
    print(f"  overhead             {_range([100 * (one / other - 1) for one, other in pairs])} %")
    print(f"  largest difference of weights {abs(trained - weights).max():.2g}")


def _range(values: Sequence[float]) -> str:
    return f"{median(values):7.2f}  ({min(values):.2f} … {max(values):.2f})"


if __name__ == "__main__":
    main()
