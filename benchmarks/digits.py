"""10,000 handwritten digits: MNIST's test files, or else digits drawn from scikit-learn's.

MNIST's two files are searched in the folder that SPARKNET_MNIST names, then in
../shared/data/mnist10k.  The drawn ones are scikit-learn's 1,797 small digits, enlarged, each
turned, stretched and moved a little several times; as files they are made once, in build/.
"""

from __future__ import annotations

import gzip
import os
import struct
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.loaders import ArrayRecords
from sparknet.loaders.mnist_cifar10 import MNIST

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data" / "mnist10k"
FILES = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
TRAINED, ALL = 8500, 10000
"""The first digits are for training, the others for testing; they share no source image."""

Array = np.ndarray[Any, Any]


def real() -> Path | None:
    """The folder with MNIST's test files, if there is one."""
    named = os.environ.get("SPARKNET_MNIST")
    is_there = named and all((Path(named) / name).is_file() for name in FILES)
    return Path(named) if named and is_there else None


if real() is None and all((SHARED / name).is_file() for name in FILES):
    os.environ["SPARKNET_MNIST"] = str(SHARED)


def source() -> str:
    """A line that says which digits these are."""
    if folder := real():
        return f"digits: MNIST's, from {folder}"
    return (
        "digits: drawn from scikit-learn's, as there are no MNIST files "
        f"({FILES[0]}, {FILES[1]}) in the folder that SPARKNET_MNIST names"
    )


def records(part: slice) -> ArrayRecords:
    """Digits with values 0 … 1, as the zoo's LeNet needs them."""
    images, labels = _all()
    return ArrayRecords(data=images[part, np.newaxis].astype(np.float32) / 256, label=labels[part])


@cache
def _all() -> tuple[Array, Array]:
    if folder := real():
        batch = MNIST(*(folder / name for name in FILES)).take(slice(None))
        return batch["data"][:, 0], batch["label"]
    images, labels = draw()
    return images, labels.astype(np.int32)


def draw() -> tuple[Array, Array]:
    """Images of 28 × 28 bytes and their labels, always the same."""
    from sklearn.datasets import load_digits

    small = load_digits()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(small.images))
    cut = len(order) * TRAINED // ALL
    chosen = np.concatenate(
        [rng.choice(order[:cut], TRAINED), rng.choice(order[cut:], ALL - TRAINED)]
    )
    images = np.pad(small.images[chosen], ((0, 0), (1, 1), (1, 1)))
    return _bent(images, rng), small.target[chosen].astype(np.uint8)


def _bent(images: Array, rng: np.random.Generator) -> Array:
    """The images at 2.5 times their size, turned by up to 6°, stretched and moved."""
    count, side = len(images), images.shape[1]
    angle = rng.uniform(-np.pi / 30, np.pi / 30, (count, 1, 1))
    stretch = rng.uniform(0.95, 1.05, (2, count, 1, 1)) / 2.5
    shift = rng.uniform(-1, 1, (2, count, 1, 1))
    down, right = np.mgrid[:28, :28] - 13.5
    y = stretch[0] * (np.cos(angle) * (down + shift[0]) - np.sin(angle) * (right + shift[1]))
    x = stretch[1] * (np.sin(angle) * (down + shift[0]) + np.cos(angle) * (right + shift[1]))
    y, x = (np.clip(axis + (side - 1) / 2, 0, side - 1.001) for axis in (y, x))
    top, left = y.astype(int), x.astype(int)
    dy, dx, n = y - top, x - left, np.arange(count)[:, None, None]
    upper = images[n, top, left] * (1 - dx) + images[n, top, left + 1] * dx
    lower = images[n, top + 1, left] * (1 - dx) + images[n, top + 1, left + 1] * dx
    turned: Array = (upper * (1 - dy) + lower * dy) * (255 / 16)
    return np.asarray(turned.round()).astype(np.uint8)


@cache
def digits() -> tuple[Path, Path]:
    """The files of images and labels."""
    folder = real() or _drawn(ROOT / "build" / "drawn-digits")
    print(source(), file=sys.stderr)
    return folder / FILES[0], folder / FILES[1]


def _drawn(folder: Path) -> Path:
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=folder.parent))
    images, labels = draw()
    contents = (
        struct.pack(">4I", 0x803, *images.shape) + images.tobytes(),
        struct.pack(">2I", 0x801, len(labels)) + labels.tobytes(),
    )
    for name, content in zip(FILES, contents, strict=True):
        (making / name).write_bytes(gzip.compress(content, mtime=0))
    with suppress(OSError):  # another process was first
        making.rename(folder)
    return folder
