"""Compares the speed of shuffled and transformed batches with the same work in numpy.

One thread makes batches on either side; files lie in the page cache:
    python -m benchmarks.loaders
"""

from __future__ import annotations

import argparse
import io
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.loaders import ArrayRecords, Batches, Blocks, Order, Records, Tars, Transform
from sparknet.loaders import write_blocks as write

Draw = Callable[[], Any]


@dataclass(frozen=True)
class Job:
    """A data set, and its transforms."""

    title: str
    count: int
    stored: tuple[int, int, int]
    batch: int
    crop: int = 0
    scale: float = 1.0
    means: tuple[float, ...] = ()


JOBS = (
    Job("28 x 28 grey", 60_000, (1, 28, 28), 64, scale=1 / 256),
    Job("256 x 256 colour, crop 227", 1_000, (3, 256, 256), 64, 227, means=(104, 117, 123)),
)


def ours(job: Job, records: Records) -> Iterator[Any]:
    transform = Transform(
        crop_size=job.crop, mirror=bool(job.crop), scale=job.scale, mean_values=job.means
    )
    with Batches(records, job.batch, Order(job.count), transforms={"data": transform}) as batches:
        while True:
            yield batches.next()["data"]


def plain(job: Job, data: Any) -> Iterator[Any]:
    """Yields batches as a short numpy program makes them: by indexing, one crop, arithmetic."""
    rng = np.random.default_rng(0)
    means = np.array(job.means or (0,), np.float32)[:, None, None]
    while True:
        order = rng.permutation(job.count)
        for begin in range(0, job.count - job.batch + 1, job.batch):
            images = data[order[begin : begin + job.batch]]
            if job.crop:
                top, left = rng.integers(0, job.stored[1] - job.crop + 1, 2)
                images = images[:, :, top : top + job.crop, left : left + job.crop]
                images = images[..., :: rng.choice((1, -1))]
            yield np.ascontiguousarray((images - means) * np.float32(job.scale))


def rate(source: Iterator[Any], seconds: float) -> float:
    """Images per second, measured over at least ``seconds``."""
    next(source)
    images, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        images += len(next(source))
    return images / passed


def compare(title: str, sides: dict[str, Iterator[Any]], rounds: int, seconds: float) -> str:
    """A row of medians; the sides take turns."""
    found: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, source in sides.items():
            found[name].append(rate(source, seconds))
    row = [f"{name} {statistics.median(rates):8.0f}/s" for name, rates in found.items()]
    return f"{title:<28} " + "   ".join(row)


def jpeg_tar(path: Path, count: int) -> Path:
    """Write a tar of images of 500 x 375, smooth with some noise."""
    from PIL import Image

    rng = np.random.default_rng(0)
    with tarfile.open(path, "w") as tar:
        for number in range(count):
            coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8))
            file = io.BytesIO()
            coarse.resize((500, 375), Image.Resampling.BICUBIC).save(file, "jpeg", quality=90)
            info = tarfile.TarInfo(f"n{number % 10}/{number}.jpg")
            info.size = file.tell()
            file.seek(0)
            tar.addfile(info, file)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for job in JOBS:
            data = np.random.default_rng(0).integers(0, 256, (job.count, *job.stored), np.uint8)
            path = Path(folder, "blocks")
            write(path, ArrayRecords(data=data, label=np.zeros(job.count, np.int32)))
            sides = {"sparknet": ours(job, Blocks(path)), "numpy": plain(job, data)}
            print(compare(job.title, sides, options.rounds, options.seconds), flush=True)
        job = Job("JPEG 500 x 375 in a tar", 200, (3, 256, 256), 50, 227, means=(104, 117, 123))
        tars = Tars(jpeg_tar(Path(folder, "some.tar"), job.count), size=(256, 256))
        print(compare(job.title, {"sparknet": ours(job, tars)}, options.rounds, options.seconds))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
