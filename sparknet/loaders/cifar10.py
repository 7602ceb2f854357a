"""CIFAR-10's binary files: a label and 3 x 32 x 32 bytes, again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.mnist import Item

SHAPE = (3, 32, 32)
SIZE = 1 + 3 * 32 * 32


def read_cifar10(paths: Sequence[str]) -> Iterator[Item]:
    """Images (red, green, blue, as stored) and labels of several files, one after the other."""
    for path in paths:
        file = Path(path)
        if not file.is_file():
            raise FileError(path, "does not exist" if not file.exists() else "is no file")
        if file.stat().st_size % SIZE:
            raise FileError(path, f"is no CIFAR-10 file: its length is no multiple of {SIZE}")
        with file.open("rb") as data:
            while len(record := data.read(SIZE)) == SIZE:
                yield np.frombuffer(record, np.uint8, offset=1).reshape(SHAPE), record[0]
