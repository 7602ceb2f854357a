"""Published small nets beside onnxruntime, one thread each, in turn.

    python -m benchmarks.small_nets FOLDER [FILE ...]

FOLDER is that of `benchmarks.published`, which downloads the packages.  A row has the least time of
a pass of 1 and of 8 records, ours and onnxruntime's, and how many of ours fit into one of theirs.
``–``: the file fixes the number of records.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.published import PACKAGES, drawn, models, opened, shapes_of
from sparknet.native import set_threads
from sparknet.onnx.source import read_source

MOST_BYTES = 1 << 23
"""Of a file of a small net."""
BATCHES = (1, 8)
HEADER = "| file | 1: ours, ms | onnxruntime's | ratio | 8: ours, ms | onnxruntime's | ratio |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*", help="names without .onnx; all small ones if left out")
    parser.add_argument("--seconds", type=float, default=0.4, help="of each pair of times")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    set_threads(1)
    print(f"{HEADER}\n|{'---|' * (HEADER.count('|') - 1)}")
    seen: set[bytes] = set()
    for package in PACKAGES:
        for file in models(chosen.folder, package):
            if (chosen.files and file.stem not in chosen.files) or file.suffix != ".onnx":
                continue
            if file.stat().st_size > MOST_BYTES or (content := file.read_bytes()) in seen:
                continue
            seen.add(content)
            cells = [cell for batch in BATCHES for cell in cells_of(file, batch, chosen.seconds)]
            print(f"| {file.stem} | {' | '.join(cells)} |", flush=True)


def cells_of(file: Path, batch: int, seconds: float) -> list[str]:
    try:
        ours, theirs = in_turn(*passes(file, batch), seconds)
    except Exception as error:  # each library has its own
        return ["–", "–", f"{str(error).splitlines()[0][-60:]}" if batch == 1 else "–"]
    return [f"{ours * 1e3:.3f}", f"{theirs * 1e3:.3f}", f"{theirs / ours:.2f}"]


def passes(file: Path, batch: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Return a pass of ours and one of onnxruntime's over the same records."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    net = opened(file, "float32")
    feeds = {
        name: np.concatenate([values] * batch)[:batch]
        for name, values in drawn(net, file, 0).items()
    }
    integers, named = read_source(file).integers, shapes_of(file)
    theirs = {
        name: np.ascontiguousarray(np.moveaxis(values, 0, net.inputs[name].axis or 0))
        for name, values in feeds.items()
    } | {name: np.asarray(one) for name, one in named.items() if np.ndim(one) == 0}
    typed = {name: values.astype(integers.get(name, "f4")) for name, values in theirs.items()}
    wanted = {one.name for one in session.get_inputs()}
    typed = {name: values for name, values in typed.items() if name in wanted}
    session.run(None, typed), net.forward(feeds)
    return lambda: net.forward(feeds), lambda: session.run(None, typed)


def in_turn(
    ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float
) -> tuple[float, float]:
    """Return the least time of each."""
    least = [float("inf")] * 2
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for side, run in enumerate((ours, theirs)):
            for _ in range(5):
                begun = time.perf_counter()
                run()
                least[side] = min(least[side], time.perf_counter() - begun)
    return least[0], least[1]


if __name__ == "__main__":
    main()
