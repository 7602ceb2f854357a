"""Which layers take longer in bfloat16 or eight bits than in float32, layer by layer and in turn.

    python -m benchmarks.narrow lenet caffenet --batch 1
    ONEDNN_MAX_CPU_ISA=AVX2 python -m benchmarks.narrow lenet     (a processor without AVX-512)

A row for each net gives its whole pass; below it stand the layers that lose more than a tenth, and
a hundredth of the net's time, and where the whole loses, all that count. A layer that is computed
with others has the time of all: what a layer loses may be what another wins.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from typing import Any

from benchmarks.peers.contests import CONTESTS, Contest
from benchmarks.peers.nets import inference_net, training_solver
from benchmarks.peers.ours import calibrated, fill
from sparknet.caffe import Net
from sparknet.caffe.solvers import SGDSolver
from sparknet.caffe.timing import measure

PRECISIONS = ("float32", "bf16", "int8")
Times = dict[str, float]


class Side:
    """A net in one precision, and the least that each of its layers has taken so far, in ms."""

    def __init__(self, contest: Contest, precision: Any, train: bool) -> None:
        self._train = train
        if train:
            self._net = SGDSolver(
                training_solver(contest), keep_blobs=False, precision=precision
            ).net
        else:
            described = inference_net(contest)
            if precision == "int8":
                described.int8_param.CopyFrom(calibrated(described, contest))
            self._net = Net.from_proto(described, keep_blobs=False, precision=precision)
        fill(self._net, contest)
        self.whole = float("inf")
        self.layers: Times = defaultdict(lambda: float("inf"))

    def run(self, iterations: int) -> None:
        timing = measure(self._net, iterations, self._train, None)
        for one in timing.iterations:
            self.whole = min(self.whole, sum(one.spans) / 1e6)
            passes = (("", one.forward), (" back", one.backward if self._train else []))
            for part, times in passes:
                for node, time in zip(timing.graph.nodes, times, strict=False):
                    name = f"{node.name} ({node.type}){part}"
                    self.layers[name] = min(self.layers[name], time / 1e6)


def compare(contest: Contest, train: bool, precisions: list[str], rounds: int) -> None:
    sides = {one: Side(contest, one, train) for one in ("float32", *precisions)}
    for _ in range(rounds):
        for side in sides.values():
            side.run(3)
    plain = sides["float32"]
    for precision in precisions:
        side = sides[precision]
        ratio = side.whole / plain.whole
        phase = "training" if train else "test"
        print(
            f"{contest.name}, batch {contest.batch}, {phase}, {precision}: {side.whole:.3f} of "
            f"{plain.whole:.3f} ms ({ratio:.2f})",
            flush=True,
        )
        for name, time in side.layers.items():
            before = plain.layers[name]
            loses = time > 1.1 * before and time - before > 0.01 * plain.whole
            if loses or (ratio > 1.03 and max(time, before) > 0.02 * plain.whole):
                print(f"    {name}: {time:.4f} of {before:.4f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("nets", nargs="*", metavar="NET", help=", ".join(CONTESTS))
    parser.add_argument("--batch", type=int, help="records at a time, in place of the net's own")
    parser.add_argument("--train", action="store_true", help="steps of training")
    parser.add_argument("--precisions", nargs="*", choices=PRECISIONS[1:], default=PRECISIONS[1:])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each precision (5)")
    asked = parser.parse_args()
    for name in asked.nets or CONTESTS:
        contest = CONTESTS[name]
        if asked.batch:
            contest = replace(contest, batch=asked.batch)
        narrow = [one for one in asked.precisions if one == "bf16" or not asked.train]
        compare(contest, asked.train, narrow, asked.rounds)


if __name__ == "__main__":
    main()
