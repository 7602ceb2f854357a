"""How much memory the constants of a model may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from sparknet.graph.budget import TooLarge

LARGEST = 1 << 24
"""Numbers of a constant that is not in the file, if what it is made from is not larger."""


def bounded(shape: Sequence[int], inputs: Sequence[Any] = ()) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if min(sizes, default=0) < 0 or len(sizes) > 32:
        raise ValueError(f"the shape {list(sizes)} is impossible")
    most = max([LARGEST, *(one.size for one in inputs if one is not None)])
    if prod(sizes) > most:
        raise TooLarge(f"its result has {prod(sizes)} numbers; {most} is the most")
    return sizes


def spread(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of values that are spread over each other."""
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        texts = " and ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"{texts} do not fit each other") from None
