"""How much memory a constant may take that a model computes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

LARGEST = 1 << 24
"""Numbers of a constant that is not in the file, if what it is made from is not larger."""


class TooLarge(ValueError):
    """A constant that would take more memory than a file may ask for."""


def bounded(shape: Sequence[int], inputs: Sequence[Any] = ()) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if min(sizes, default=0) < 0 or len(sizes) > 32:
        raise ValueError(f"the shape {list(sizes)} is impossible")
    most = max([LARGEST, *(one.size for one in inputs if one is not None)])
    if prod(sizes) > most:
        raise TooLarge(f"its result has {prod(sizes)} numbers; {most} is the most")
    return sizes
