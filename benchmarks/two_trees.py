"""Speed of this tree beside another one of sparknet, such as a commit of before.

    git worktree add ../before COMMIT; make -C ../before setup
    python -m benchmarks.two_trees ../before [--nets lenet …] [--modes train inference]
        [--precisions float32] [--rounds 5] [--seconds 1]

Each tree has a process with its own environment, and they take turns.  A ratio is the other tree's
least milliseconds divided by this one's in the same round: least, median, largest.  Below 1 this
tree is slower.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from benchmarks.peers.contests import CONTESTS
from benchmarks.peers.process import ROOT, Process

LIMIT = 300


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
            for mode in chosen.modes:
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
    ratios = [before / now for before, now in zip(*turns, strict=True)]
    before, now = map(min, turns)
    spread = f"{min(ratios):.2f}, **{median(ratios):.2f}**, {max(ratios):.2f}"
    return f"{before:.3g} | {now:.3g} | {spread}"


if __name__ == "__main__":
    main()
