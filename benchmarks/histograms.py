"""Compares a step at which worker 0 looks at its layers with a step at which it does not.

    python -m benchmarks.histograms
Both take turns, on made-up records; times are the processor's, of all threads.  A look is what
`histograms_every` asks for.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

from benchmarks.comm import spread
from sparknet import models
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.learner import NetFeed, SolverLearner
from sparknet.training.planning.subject import made_up, with_batch
from sparknet.training.workers.metrics import look
from sparknet.weights import layout_of

NETS = {"lenet": 64, "cifar10_quick": 100, "caffenet": 32, "resnet50": 4}


def seconds(name: str, batch: int, steps: int) -> list[tuple[float, float]]:
    """Pairs of a step's processor seconds without a look, and with one."""
    net = Net(with_batch(Net(models.solver(name), seed=1), batch), seed=1)
    data = made_up(net, 4 * batch)
    with Batches(data, batch, Order(len(data), 0, True)) as batches:
        net.set_training_data(batches, transformed=True)
        learner = SolverLearner(net.solver, NetFeed(net, batches))
        layout = layout_of(net.net)

        def watch(weights: NDArray, gradients: NDArray) -> None:
            look(layout, weights, gradients)

        learner.step(2)
        pairs = []
        for _ in range(steps):
            begun = time.process_time()
            learner.step(1)
            between = time.process_time()
            learner.on_gradient = watch
            learner.step(1)
            pairs.append((between - begun, time.process_time() - between))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=15)
    asked = parser.parse_args()
    print("| net | batch | a step | with a look | a look, in steps |")
    print("|---|---|---|---|---|")
    for name, batch in NETS.items():
        pairs = seconds(name, batch, asked.steps)
        plain, watched = (f"{1e3 * median(one):.2f} ms" for one in zip(*pairs, strict=True))
        ratio = spread([watched / plain - 1 for plain, watched in pairs], 2)
        print(f"| {name} | {batch} | {plain} | {watched} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
