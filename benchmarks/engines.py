"""The engine of PyTorch beside the native one and beside plain PyTorch, in turn.

    python -m benchmarks.engines [--nets lenet caffenet] [--modes train infer] [--rounds 5]
        [--threads 1 2] [--batch 8] [--precisions float32 bf16] [--device cuda]

Each side is a process of its own; a round runs a turn of each.  A figure is the median of the
rounds', in milliseconds a step, with the least and the most of them; the ratios are those of the
same rounds.  Memory is the process's peak, or on a GPU what PyTorch holds there.  On a GPU
the steps of a turn are waited for at its end alone, and plain PyTorch is the faster one of
contiguous and channels-last memory, once kernel by kernel and once with a CUDA graph for each step.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

from benchmarks.peers.process import Process, SideFailed

OURS = "engine torch"
BESIDE = ["sparknet", "torch"]
ON_GPU = {"lenet": 64, "cifar10_quick": 100, "caffenet": 256, "googlenet": 128}
"""Batches; those of other nets are 64."""


@dataclass(frozen=True)
class Way:
    """A column of the table, or one of those that its best is taken of."""

    column: str
    process: Process
    variant: str
    way: str = ""

    def ms(self, steps: int) -> float:
        """Milliseconds a step."""
        spent = self.process.run(steps, self.way)["ms"]
        return float(fmean(spent) if "cuda" in self.variant else median(spent))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nets", nargs="+", default=["lenet", "cifar10_quick", "caffenet"])
    parser.add_argument("--modes", nargs="+", default=["infer", "train"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precisions", nargs="+", default=["float32"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--batch", type=int)
    parser.add_argument(
        "--layouts", nargs="+", default=["contiguous", "channels_last"], help="of plain PyTorch"
    )
    asked = parser.parse_args()
    gpu = asked.device.startswith("cuda")
    for threads in asked.threads[: 1 if gpu else None]:
        with TemporaryDirectory() as folder, ExitStack() as stack:
            log = Path(folder) / "log"
            processes = [
                stack.enter_context(Process(library, sys.executable, threads, log, 150))
                for library in ["sparknet", *(["torch"] * len(asked.layouts) if gpu else BESIDE)]
            ]
            ways = [Way(OURS, processes[0], asked.device)]
            if gpu:
                for layout, process in zip(asked.layouts, processes[1:], strict=True):
                    variant = f"cuda {layout}"
                    ways.append(Way("plain torch", process, variant))
                    ways.append(Way("plain torch, graphs", process, variant, "graph"))
            else:
                ways.insert(0, Way("native", processes[1], ""))
                ways.append(Way("plain torch", processes[2], ""))
            columns = list(dict.fromkeys(way.column for way in ways))
            told = ("net", "batch", "mode", "numbers", "threads", *columns)
            told += tuple(f"{OURS} / {column}" for column in columns if column != OURS)
            told += tuple(f"MB of {column}" for column in columns)
            print(f"| {' | '.join(told)} |\n|{'---|' * len(told)}", flush=True)
            for mode in asked.modes:
                for net in asked.nets:
                    batch = asked.batch or (ON_GPU.get(net, 64) if gpu else None)
                    for precision in asked.precisions:
                        given = [net, str(batch or ""), mode, precision, str(threads)]
                        try:
                            given += _row(ways, net, mode, precision, batch, asked)
                        except SideFailed as error:
                            given.append(str(error))
                        print(f"| {' | '.join(given)} |", flush=True)


def _row(
    ways: list[Way],
    net: str,
    mode: str,
    precision: str,
    batch: int | None,
    asked: argparse.Namespace,
) -> list[str]:
    steps = []
    with ThreadPoolExecutor() as pool:
        loads = [
            pool.submit(way.process.load, net, mode, precision, way.variant, batch)
            for way in ways
            if not way.way
        ]
        for load in loads:
            load.result()
    memory: dict[str, int] = {}
    for way in ways:
        held = way.process.run(4, way.way)["memory"]
        memory[way.column] = min(held, memory.get(way.column, held))
        steps.append(min(max(round(1000 * asked.seconds / way.ms(4)), 2), 2000))
    found: dict[str, list[float]] = {way.column: [] for way in ways}
    for _ in range(asked.rounds):
        turn: dict[str, float] = {}
        for way, count in zip(ways, steps, strict=True):
            turn[way.column] = min(way.ms(count), turn.get(way.column, float("inf")))
        for column, ms in turn.items():
            found[column].append(ms)
    ratios = [
        median(a / b for a, b in zip(found[OURS], times, strict=True))
        for column, times in found.items()
        if column != OURS
    ]
    return [
        *map(_spread, found.values()),
        *(f"{ratio:.2f}" for ratio in ratios),
        *(f"{held / 1e6:,.0f}" for held in memory.values()),
    ]


def _spread(turns: list[float]) -> str:
    return f"{median(turns):.2f} ({min(turns):.2f}–{max(turns):.2f})"


if __name__ == "__main__":
    main()
