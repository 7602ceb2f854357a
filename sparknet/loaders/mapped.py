"""Files mapped into memory: pages come when they are touched, and go when memory is short."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sparknet.errors import FileError, shown
from sparknet.loaders.records import Array, ArrayRecords, Batch, Indices, Opened
from sparknet.native.guard import Guard
from sparknet.proto.byte_source import StrPath, check_is_file, open_file

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Order = Literal["C", "F"]

MOST_GROWTH = 1100
"""Deflate makes at most about 1030 bytes out of one."""
_FREE, _GROWTH = 1 << 28, 32


def most_unpacked(packed: int) -> int:
    """The most bytes that so many packed ones may become."""
    return min(MOST_GROWTH * max(packed, 1), _FREE + _GROWTH * packed)


class FileRecords(Opened, ArrayRecords):
    """Arrays that are views of files.

    Where a file is cut short while it is in use the next `take` raises FileError; rows of a
    slice that was taken before turn to zeros.
    """

    def __init__(self, guards: Sequence[Guard], **arrays: Any) -> None:
        super().__init__(**arrays)
        self._guards = guards
        self._check()

    def take(self, indices: Indices) -> Batch:
        batch = super().take(indices)
        self._check()
        return batch

    def _check(self) -> None:
        for guard in self._guards:
            guard.check()


def map_file(path: StrPath, guards: list[Guard]) -> Bytes:
    """The bytes of an ordinary file, for reading; its guard joins the others."""
    check_is_file(path)
    try:
        with open_file(path) as file:
            if not file.seek(0, 2):
                return np.zeros(0, np.uint8)
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise FileError(path, f"cannot be mapped: {error}") from error
    guards.append(Guard(memory, path))
    return np.frombuffer(memory, np.uint8)


def shaped(values: Array, shape: tuple[int, ...], path: StrPath, order: Order = "C") -> Array:
    """In the shape that a file announces, which numpy may not know: 70 axes, or 0 x 2^40 x 2^40."""
    try:
        return values.reshape(shape, order=order)
    except (ValueError, OverflowError, TypeError) as error:
        sizes = shown(" x ".join(map(str, shape)))
        raise FileError(path, f"announces an array of {sizes}, which numpy cannot hold") from error
