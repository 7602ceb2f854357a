"""Translates index expressions into arguments of the native core."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from sparknet.errors import ArrayError, IndexOutOfRange


class Selection(NamedTuple):
    """A slice of every axis, then which axes go, then the shape with the new axes."""

    starts: list[int]
    sizes: list[int]
    steps: list[int]
    dropped: list[int]
    shape: tuple[int, ...]
    reshaped: bool


def position(index: Any, axis: int, size: int) -> int:
    """Return a position on an axis, counted from its end if negative."""
    try:
        number = operator.index(index)
    except TypeError:
        raise ArrayError(f"an NDArray is not indexed by {type(index).__name__}") from None
    if not -size <= number < size:
        raise IndexOutOfRange(f"index {number} is outside axis {axis} of size {size}")
    return number + size if number < 0 else number


def expand(key: Any, ndim: int) -> list[Any]:
    """Return one entry per axis (and None per new axis), the ellipsis written out."""
    entries = list(key) if isinstance(key, tuple) else [key]
    count = sum(entry is not None and entry is not Ellipsis for entry in entries)
    dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]
    if count > ndim:
        raise IndexOutOfRange(f"{count} indices are too many for {ndim} axes")
    if len(dots) > 1:
        raise ArrayError("an index has more than one ellipsis")
    where = dots[0] if dots else len(entries)
    rest = [slice(None)] * (ndim - count)
    return entries[:where] + rest + entries[where + 1 :]


def select(key: Any, shape: tuple[int, ...]) -> Selection:
    """Resolves an index expression of integers, slices, ... and None."""
    starts: list[int] = []
    sizes: list[int] = []
    steps: list[int] = []
    dropped: list[int] = []
    result: list[int] = []
    reshaped = False
    for entry in expand(key, len(shape)):
        axis = len(starts)
        if entry is None:
            result.append(1)
            reshaped = True
            continue
        if isinstance(entry, slice):
            start, size, step = _resolve(entry, shape[axis])
            result.append(size)
        else:
            start, size, step = position(entry, axis, shape[axis]), 1, 1
            dropped.append(axis)
        starts.append(start)
        sizes.append(size)
        steps.append(step)
    return Selection(starts, sizes, steps, dropped, tuple(result), reshaped)


def _resolve(entry: slice, size: int) -> tuple[int, int, int]:
    try:
        start, stop, step = entry.indices(size)
    except (TypeError, ValueError) as error:
        raise ArrayError(f"{entry}: {error}") from None
    count = len(range(start, stop, step))
    return (start if count else 0), count, (step if count > 1 else 1)
