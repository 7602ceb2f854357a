"""Speed of this tree beside another one of sparknet, such as a commit of before.

    git worktree add ../before COMMIT; make -C ../before setup
    python -m benchmarks.two_trees ../before [--nets lenet …] [--modes train inference workers]
        [--precisions float32] [--workers 2 4] [--rounds 5] [--seconds 1]

Each tree has a process with its own environment, and they take turns.  A ratio is the other tree's
least milliseconds divided by this one's in the same round: least, median, largest.  Below 1 this
tree is slower.  `workers` are rounds of Averaging by so many processes of a thread each, of LeNet
and CaffeNet; each turn is a training, and the first third of its rounds does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.process import ROOT, Process

LIMIT = 300
STEPS = {"lenet": (600, 10), "caffenet": (10, 2)}
"""Net → steps of a training, and those of a round."""
TRAINING = """
import json, sys
import numpy as np
import sparknet
from sparknet.training import Averaging

if __name__ == "__main__":
    solver, workers, steps, every, count, *shape = sys.argv[1], *map(int, sys.argv[2:])
    rng = np.random.default_rng(0)
    data = {
        "data": rng.random((count, *shape), np.float32),
        "label": rng.integers(0, 10, count),
    }
    trained = sparknet.train(
        solver, data, strategy=Averaging(steps=every), workers=workers, steps=steps, threads=1
    )
    ends = [one["total_seconds"] for one in trained.history if "total_seconds" in one]
    begin = len(ends) // 3
    print(json.dumps(1e3 * (ends[-1] - ends[begin]) / (len(ends) - 1 - begin)))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tree", type=Path)
    parser.add_argument("--nets", nargs="+", choices=CONTESTS, default=list(CONTESTS))
    parser.add_argument("--modes", nargs="+", default=["train", "inference"])
    parser.add_argument("--precisions", nargs="+", default=["float32"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", nargs="+", type=int, default=[2, 4])
    chosen = parser.parse_args()
    print("| net | pass | precision | before, ms | now, ms | ratio |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        trees = [
            stack.enter_context(
                Process(
                    "sparknet",
                    str(tree / ".venv/bin/python"),
                    chosen.threads,
                    Path(scratch, "log"),
                    LIMIT,
                    folder=tree,
                )
            )
            for tree in (chosen.tree.resolve(), ROOT)
        ]
        for net in chosen.nets:
            if "workers" in chosen.modes and net in STEPS:
                for workers in chosen.workers:
                    row = rounds_of(chosen.tree.resolve(), net, workers, Path(scratch), chosen)
                    print(f"| {net} | {workers} workers | float32 | {row} |", flush=True)
            for mode in (one for one in chosen.modes if one != "workers"):
                for precision in chosen.precisions:
                    figures = compare(trees, net, mode, precision, chosen)
                    print(f"| {net} | {mode} | {precision} | {figures} |", flush=True)


def compare(
    trees: list[Process], net: str, mode: str, precision: str, chosen: argparse.Namespace
) -> str:
    for tree in trees:
        tree.load(net, mode, precision)
        tree.run(3)
    step = min(trees[1].run(3)["ms"])
    steps = max(3, round(chosen.seconds * 1e3 / step))
    turns: list[list[float]] = [[], []]
    for number in range(chosen.rounds):
        for one in (0, 1) if number % 2 else (1, 0):
            turns[one].append(min(trees[one].run(steps)["ms"]))
    return figures_of(turns)


def rounds_of(tree: Path, net: str, workers: int, scratch: Path, chosen: argparse.Namespace) -> str:
    """Compare the time of a round."""
    from benchmarks.peers.nets import training_solver

    contest = replace(CONTESTS[net], batch=64 if net == "lenet" else 4)
    solver = scratch / f"{net}.prototxt"
    solver.write_text(str(training_solver(contest)))
    (scratch / "training.py").write_text(TRAINING)
    steps, every = STEPS[net]
    numbers = (workers, 2 * steps // workers, every, 16 * contest.batch, *contest.shape)
    turns: list[list[float]] = [[], []]
    for number in range(chosen.rounds):
        for one in (0, 1) if number % 2 else (1, 0):
            folder = (tree, ROOT)[one]
            words = [str(folder / ".venv/bin/python"), str(scratch / "training.py"), str(solver)]
            done = subprocess.run(
                [*words, *map(str, numbers)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(folder)},
                stdout=subprocess.PIPE,
                check=True,
                timeout=LIMIT,
            )
            turns[one].append(json.loads(done.stdout.splitlines()[-1]))
    return figures_of(turns)


def figures_of(turns: list[list[float]]) -> str:
    ratios = [before / now for before, now in zip(*turns, strict=True)]
    before, now = map(min, turns)
    spread = f"{min(ratios):.2f}, **{median(ratios):.2f}**, {max(ratios):.2f}"
    return f"{before:.3g} | {now:.3g} | {spread}"


if __name__ == "__main__":
    main()
