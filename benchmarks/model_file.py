"""Compares loading and saving a CaffeNet-sized caffemodel with plain reads and writes.

Both sides are measured in turns, several times, from a warm page cache:
    python -m benchmarks.model_file
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sparknet.proto import caffe_pb2
from sparknet.proto.model import Model
from sparknet.proto.model_file import read_model, write_model

CAFFENET = {
    "conv1": (96, 3, 11, 11),
    "conv2": (256, 48, 5, 5),
    "conv3": (384, 256, 3, 3),
    "conv4": (384, 192, 3, 3),
    "conv5": (256, 192, 3, 3),
    "fc6": (4096, 9216),
    "fc7": (4096, 4096),
    "fc8": (1000, 4096),
}


def caffenet_model() -> Model:
    """Weights of CaffeNet's sizes: 61 million floats, 244 MB."""
    random = np.random.default_rng(0)
    net = caffe_pb2.NetParameter(name="CaffeNet")
    for name in CAFFENET:
        kind = "Convolution" if name.startswith("conv") else "InnerProduct"
        net.layer.add(name=name, type=kind)
    arrays = [
        [random.standard_normal(shape, np.float32), np.zeros(shape[0], np.float32)]
        for shape in CAFFENET.values()
    ]
    return Model(net, [list(pair) for pair in arrays])


def touch(model: Model) -> None:
    """Reads one float of every page."""
    for arrays in model.arrays:
        for array in arrays:
            if array is not None:
                array.reshape(-1)[:: 4096 // 4].sum()


def read_plainly(path: Path) -> None:
    np.fromfile(path, np.uint8)[::4096].sum()


def compare(
    title: str, ours: Callable[[], object], plain: Callable[[], object], rounds: int
) -> float:
    """Times both in turns, prints medians and ranges, returns the ratio of the medians."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        for record, call in zip(times, (ours, plain), strict=True):
            start = time.perf_counter()
            call()
            if turn:  # the first round warms up
                record.append(time.perf_counter() - start)
    medians = [statistics.median(record) for record in times]
    spread = [f"{min(record) * 1e3:.0f}..{max(record) * 1e3:.0f}" for record in times]
    ratio = medians[0] / medians[1]
    print(
        f"{title:<14} sparknet {medians[0] * 1e3:6.0f} ms ({spread[0]})   "
        f"plain {medians[1] * 1e3:6.0f} ms ({spread[1]})   ratio {ratio:.2f}"
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the files are made (default: /tmp)")
    options = parser.parse_args()
    model = caffenet_model()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for suffix in (".caffemodel", ".caffemodel.h5"):
            path, copy = Path(folder, f"model{suffix}"), Path(folder, f"copy{suffix}")
            write_model(path, model)
            content = path.read_bytes()
            print(f"{path.name}: {len(content) / 1e6:.0f} MB, {options.rounds} rounds in turns")
            compare(
                "  load",
                lambda path=path: touch(read_model(path)),  # type: ignore[misc]
                lambda path=path: read_plainly(path),  # type: ignore[misc]
                options.rounds,
            )
            compare(
                "  save",
                lambda copy=copy: write_model(copy, model),  # type: ignore[misc]
                lambda copy=copy, content=content: copy.write_bytes(content),  # type: ignore[misc]
                options.rounds,
            )


if __name__ == "__main__":
    main()
