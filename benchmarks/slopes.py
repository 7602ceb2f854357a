"""How fast the memory of each process of a training run grows.

LeNet trains on drawn data with two workers, in rounds of one step with small batches, so that
there are as many events as possible:
    python -m benchmarks.slopes --seconds 600
The resident set of each process is looked at twice a second.  Its slope is that of the line with
the least squares, after a warm-up: a third of the time, in which buffers and the bounded history
of events fill.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from sparknet import train
from sparknet.dsl import SolverParams
from sparknet.models.lenet import net
from sparknet.training import Averaging

BOUND = 50.0
"""KiB a minute; a program that exceeds it ends with status 1."""
PAGE = os.sysconf("SC_PAGE_SIZE") / 1024
EVERY = 0.5

Samples = list[tuple[float, float]]
"""Seconds and KiB."""


class Watch:
    """Looks at processes until it is closed; events name the workers'."""

    def __init__(self) -> None:
        self.samples: dict[str, Samples] = defaultdict(list)
        self.rounds = 0
        self._processes = {"driver": os.getpid()}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def __call__(self, event: dict[str, Any]) -> None:
        self.rounds += event["event"] == "round"
        if event["event"] == "workers":
            for number, worker in enumerate(event["workers"]):
                self._processes[f"worker {number}"] = worker["process"]
        if event["event"] == "stop":
            self._over.set()

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            now = time.monotonic()
            for name, process in tuple(self._processes.items()):
                pages = Path(f"/proc/{process}/statm").read_text().split()[1]
                self.samples[name].append((now, int(pages) * PAGE))


def slope(samples: Samples) -> float:
    """KiB a minute, by least squares."""
    at, sizes = np.array(samples).T
    return float(60 * np.polyfit(at - at[0], sizes, 1)[0])


def warm(samples: Samples, share: float) -> Samples:
    """What comes after the warm-up, a share of the time."""
    begin, end = samples[0][0], samples[-1][0]
    return [one for one in samples if one[0] >= begin + share * (end - begin)]


def measure(seconds: float, batch: int) -> Watch:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((640, 1, 28, 28)).astype(np.float32)
    labels = rng.integers(0, 10, 640).astype(np.float32)
    solver = SolverParams(net=net(batch, batch), base_lr=1e-4, lr_policy="fixed", display=0)
    with Watch() as watch:
        train(
            solver,
            (images, labels),
            workers=2,
            strategy=Averaging(steps=1),
            seconds=seconds,
            threads=1,
            on_event=watch,
        )
    return watch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--warm-up", type=float, default=1 / 3, help="share of the time")
    chosen = parser.parse_args()
    watch = measure(chosen.seconds, chosen.batch)
    print(f"{watch.rounds} rounds in {chosen.seconds:.0f} s; bound: {BOUND:.0f} KiB a minute")
    worst = 0.0
    for name, samples in watch.samples.items():
        found = warm(samples, chosen.warm_up)
        worst = max(worst, slope(found))
        tenths = samples[:: max(1, len(samples) // 10)]
        sizes = ", ".join(f"{size / 1024:.2f}" for _, size in tenths)
        print(f"{name}: {slope(found):+.1f} KiB a minute (MiB over the whole time: {sizes})")
    return int(worst > BOUND)


if __name__ == "__main__":
    raise SystemExit(main())
