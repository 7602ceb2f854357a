"""Measures what another pycaffe costs in each round: weights gathered and scattered, 244 MB.

    python -m benchmarks.backend [--backend NAME] [--rounds 10] [--model caffenet]

In turn: the embedded engine's own buffer, which is lent; the backend's weights gathered from its
layers, and scattered to them; its histories read and written through a solverstate; and one plain
copy of as many bytes.  The backend is a module with pycaffe's public names, made from
sparknet.caffe unless another one is named.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from sparknet import models
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.learner import NetFeed, SolverLearner
from sparknet.net.pycaffe_learner import PycaffeLearner
from sparknet.proto import caffe_pb2

MODULE = "tests.net.public_caffe"


def solver(model: str, folder: str) -> Any:
    """A solver of a net of the zoo, which is never run."""
    made = caffe_pb2.SolverParameter(type="SGD", base_lr=0.01, lr_policy="fixed", momentum=0.9)
    made.net_param.CopyFrom(models.net(model).to_proto())
    made.snapshot_prefix = str(Path(folder) / "solver")
    return made


def timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def things(model: str, backend: str, folder: str) -> tuple[int, dict[str, Callable[[], Any]]]:
    """The bytes of the weights, and what is measured."""
    described = solver(model, folder)
    own_net, other_net = Net(described, seed=1), Net(described, seed=1, backend=backend)
    own = SolverLearner(own_net.solver, NetFeed(own_net, None))  # type: ignore[arg-type]
    other = PycaffeLearner(other_net, NetFeed(other_net, None), 1)  # type: ignore[arg-type]
    spare = NDArray.empty(own.weights.shape)
    other_net.apply_update()  # a solver that has done nothing yet has no histories to read
    other._own = other._wanted = other._own.next(described)

    def gather() -> None:
        other._weights.expire()
        _ = other.weights

    def histories() -> None:
        other._state.expire()
        _ = other.histories

    return own.weights.nbytes, {
        "lent by the embedded engine": lambda: own.weights,
        "gathered": gather,
        "scattered": other._weights.send,
        "histories read": histories,
        "histories written": other._state.send,
        "one plain copy": lambda: np.copyto(np.asarray(spare), np.asarray(own.weights)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default=MODULE)
    parser.add_argument("--model", default="caffenet")
    parser.add_argument("--rounds", type=int, default=10)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        size, measured = things(chosen.model, chosen.backend, folder)
        times: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(chosen.rounds + 1):
            for name, work in measured.items():
                times[name].append(timed(work))
    print(f"{chosen.model}, {size / 1e6:.0f} MB, backend {chosen.backend}")
    copy = median(times["one plain copy"][1:])
    for name, values in times.items():
        rest = values[1:]
        print(
            f"  {name:28}{1e3 * median(rest):9.2f} ms  ({1e3 * min(rest):.2f} … "
            f"{1e3 * max(rest):.2f}), {median(rest) / copy:6.2f} plain copies"
        )


if __name__ == "__main__":
    main()
