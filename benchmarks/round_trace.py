"""Which files of ours a steady round on Spark enters: python -m benchmarks.round_trace

Worker 0 of two is looked at, in all its threads, between the reports of two rounds.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

MIDDLE = ("training", "comm", "spark", "net", "caffe")
ROOMS = (*MIDDLE, "loaders", "native", "layers", "graph", "weights")
SKIPPED, ROUNDS = 3, 8
ENDS = ("training/workers/rounds.py", "_account")
LOADS = ("net/learner.py", "_load")


class Rounds:
    """The files entered, a count for each; a round ends when it has been accounted for.

    Files entered while a learner waits for its batch also count as the batch's way, from the queue
    of batches into the net's blobs.
    """

    def __init__(self) -> None:
        self.done: list[dict[str, Counter[str]]] = []
        self.entered: Counter[str] = Counter()
        self.way: Counter[str] = Counter()
        self._loads: int | None = None
        """The thread whose learner loads a batch."""

    def __call__(self, frame: Any, event: str, _: object) -> None:
        _, ours, name = frame.f_code.co_filename.rpartition("/sparknet/")
        if not ours or event not in ("call", "return"):
            return
        place = (name, frame.f_code.co_name)
        if event == "call":
            if place == LOADS:
                self._loads = threading.get_ident()
            self.entered[name] += 1
            if self._loads == threading.get_ident():
                self.way[name] += 1
        elif place == LOADS:
            self._loads = None
        elif place == ENDS:
            self.done.append({"entered": self.entered, "way": self.way})
            self.entered, self.way = Counter(), Counter()


def traced(batches: Iterable[Any], spec: Any, columns: Any, path: str) -> Iterator[Any]:
    """A worker's task; worker 0 writes what its rounds entered."""
    from pyspark import BarrierTaskContext

    from sparknet.spark.hosts import task

    rounds = Rounds()
    threading.setprofile(rounds)
    sys.setprofile(rounds)
    try:
        yield from task.train(batches, spec=spec, columns=columns)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        if BarrierTaskContext.get().partitionId() == 0:
            Path(path).write_text(json.dumps(rounds.done))


def traces(session: Any) -> dict[str, dict[str, int]]:
    """The files that every steady round and each batch's way enter, and how often in a round."""
    from sparknet import LinearLayer, NetParams, RDDLayer, SoftmaxWithLoss, SolverParams
    from sparknet.spark import Trainer
    from sparknet.spark.hosts import task

    net = NetParams(
        "lines",
        RDDLayer("data", shape=[32, 2]),
        RDDLayer("label", shape=[32]),
        LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
        SoftmaxWithLoss("loss", ["ip", "label"]),
    )
    solver = SolverParams(net=net, base_lr=0.1, lr_policy="fixed")
    points = np.random.default_rng(0).normal(size=(512, 2))
    rows = [(point.tolist(), int(point[0] > point[1])) for point in points]
    frame = session.createDataFrame(rows, "data array<double>, label int")
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "rounds.json"))
        with patch.object(task, "train", partial(traced, path=path)):
            Trainer(solver, workers=2, steps=10 * ROUNDS).fit(frame)
        rounds = json.loads(Path(path).read_text())[SKIPPED:-1]
    return {kind: _steady([one[kind] for one in rounds]) for kind in ("entered", "way")}


def _steady(rounds: list[dict[str, int]]) -> dict[str, int]:
    return {
        name: sum(one[name] for one in rounds) // len(rounds)
        for name in sorted(set.intersection(*map(set, rounds)))
    }


def main() -> None:
    from sparknet.spark import local_session

    found = traces(local_session(2))
    for room in ROOMS:
        files = [name for name in found["entered"] if name.startswith(f"{room}/")]
        print(f"{room}: {len(files)} files")
        for name in files:
            print(f"  {name:<40} {found['entered'][name]:>6} calls a round")
    print("the way of a batch, from the queue of batches into the blobs:")
    for name, calls in found["way"].items():
        print(f"  {name:<40} {calls:>6} calls a round")


if __name__ == "__main__":
    main()
