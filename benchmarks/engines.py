"""The engine of PyTorch beside the native one and beside plain PyTorch, in turn.

    python -m benchmarks.engines [--nets lenet caffenet] [--modes train infer] [--device cpu]
        [--rounds 5] [--threads 1 2] [--batch 8] [--precision float32]

Each side is a process of its own; a round runs a turn of each.  A figure is the median of the
rounds' medians, in milliseconds a step, with the least and the most of them; the ratios are those
of the same rounds.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.peers.process import Process, SideFailed

SIDES = ("native", "engine torch", "plain torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", default=["lenet", "cifar10_quick", "caffenet"])
    parser.add_argument("--modes", nargs="+", default=["infer", "train"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--batch", type=int)
    asked = parser.parse_args()
    told = ("net", "mode", "threads", *SIDES, "torch / native", "torch / plain")
    print(f"| {' | '.join(told)} |\n|{'---|' * len(told)}")
    for net in asked.nets:
        for mode in asked.modes:
            for threads in asked.threads:
                print(_row(net, mode, threads, asked), flush=True)


def _row(net: str, mode: str, threads: int, asked: argparse.Namespace) -> str:
    with TemporaryDirectory() as folder, ExitStack() as stack:
        found: dict[str, list[float]] = {side: [] for side in SIDES}
        turns = []
        for side in SIDES:
            library = "torch" if side == "plain torch" else "sparknet"
            process = stack.enter_context(
                Process(library, sys.executable, threads, Path(folder) / "log", 150)
            )
            variant = asked.device if side == "engine torch" else ""
            try:
                process.load(net, mode, asked.precision, variant, asked.batch)
            except SideFailed as error:
                return f"| {net} | {mode} | {threads} | {error} | | | | |"
            process.run(2)
            ms = min(process.run(3)["ms"])
            turns.append((side, process, min(max(round(1000 / ms), 2), 300)))
        for _ in range(asked.rounds):
            for side, process, steps in turns:
                found[side].append(median(process.run(steps)["ms"]))
    native, engine, plain = (found[side] for side in SIDES)
    told = [net, mode, str(threads), *(_spread(one) for one in (native, engine, plain))]
    for other in (native, plain):
        told.append(f"{median(a / b for a, b in zip(engine, other, strict=True)):.2f}")
    return f"| {' | '.join(told)} |"


def _spread(turns: list[float]) -> str:
    return f"{median(turns):.2f} ({min(turns):.2f}–{max(turns):.2f})"


if __name__ == "__main__":
    main()
