"""Milliseconds of one image: sparknet, OpenCV 4, and OpenCV 5 on our ONNX, in turn.

python -m benchmarks.opencv FOLDER speed [--rounds 15] [--threads 1 2]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from math import prod
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.opencv.models import MODELS, exported

SIDES = ("sparknet", "OpenCV 4", "OpenCV 5")
CALLS = 3
"""Passes of a turn, of which the fastest counts."""


def main() -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.opencv FOLDER speed")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        serve(chosen.side, chosen.folder, chosen.threads[0])
        return 0
    for model in MODELS:
        exported(chosen.folder, model)
    print(f"| threads | model | {' | '.join(SIDES)} | 4 / ours | 5 / ours |")
    print(f"|{'---|' * 7}")
    for threads in chosen.threads:
        ratios = contest(chosen.folder, threads, chosen.rounds)
        for number, version in enumerate((4, 5)):
            known = [row[number] for row in ratios if row[number]]
            mean = prod(known) ** (1 / max(len(known), 1))
            words = f"{threads} threads: OpenCV {version} takes {mean:.2f} times as long"
            print(f"\n{words} (least {min(known, default=0):.2f})\n")
    return 0


def contest(folder: Path, threads: int, rounds: int) -> list[list[float]]:
    """Print a row for each model; returns OpenCV's times by ours."""
    workers = {side: start(side, folder, threads) for side in SIDES}
    rows = []
    for model in MODELS:
        times: dict[str, list[float]] = {side: [] for side in SIDES}
        for _ in range(rounds):
            for side, worker in workers.items():
                if milliseconds := ask(worker, model.name):
                    times[side].append(milliseconds)
        medians = [float(np.median(taken)) if taken else 0.0 for taken in times.values()]
        rows.append([other / medians[0] for other in medians[1:]])
        cells = [f"{value:.2f}" if value else "–" for value in (*medians, *rows[-1])]
        print(f"| {threads} | {model.name} | {' | '.join(cells)} |", flush=True)
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    return rows


def start(side: str, folder: Path, threads: int) -> Any:
    python = os.environ["OPENCV_5_PYTHON"] if side == "OpenCV 5" else sys.executable
    words = [
        "-m",
        "benchmarks.opencv.speed",
        str(folder),
        "--side",
        side,
        "--threads",
        str(threads),
    ]
    more = {"OMP_NUM_THREADS": str(threads)}
    return subprocess.Popen(
        [python, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **more},
    )


def ask(worker: Any, name: str) -> float:
    """Return the milliseconds of a pass; 0 where the side cannot run the model."""
    worker.stdin.write(f"{name}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline() or 0)


def serve(side: str, folder: Path, threads: int) -> None:
    """Answer names of models with milliseconds."""
    nets: dict[str, Any] = {}
    models = {model.name: model for model in MODELS}
    for line in sys.stdin:
        model = models[line.strip()]
        width, height = model.sizes[0]
        blob = np.random.default_rng(1).uniform(-1, 1, (1, 1 if model.grey else 3, height, width))
        try:
            if model.name not in nets:
                nets[model.name] = opened(side, folder, threads, *model.files(folder), model.name)
            print(milliseconds(nets[model.name], blob.astype(np.float32)), flush=True)
        except Exception:
            print(0, flush=True)


def opened(side: str, folder: Path, threads: int, prototxt: str, caffemodel: str, name: str) -> Any:
    if side == "sparknet":
        from sparknet.opencv import dnn

        return dnn.readNetFromCaffe(prototxt, caffemodel)
    import cv2

    cv2.setNumThreads(threads)
    if side == "OpenCV 5":
        return cv2.dnn.readNetFromONNX(str(folder / f"{name}.onnx"))
    return cv2.dnn.readNetFromCaffe(prototxt, caffemodel)


def milliseconds(net: Any, blob: Any) -> float:
    best = float("inf")
    for _ in range(CALLS):
        begin = perf_counter()
        net.setInput(blob)
        net.forward()
        best = min(best, perf_counter() - begin)
    return best * 1e3


if __name__ == "__main__":
    sys.exit(main())
