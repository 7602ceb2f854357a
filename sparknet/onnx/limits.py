"""How much memory and work a model may ask for, in proportion to its file and to given shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

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


def spread(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape of values that are spread over each other."""
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        texts = " and ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"{texts} do not fit each other") from None


@dataclass
class Budget:
    """What is left for the layers of a net, for each record."""

    numbers: int
    products: int

    @classmethod
    def of(cls, size: int, given: int) -> Budget:
        """For a file of so many bytes, and inputs of so many numbers whose shapes its user gave."""
        return cls(
            (1 << 27) + (size << 10) + (given << 12), (1 << 36) + (size << 20) + (given << 24)
        )

    def take(self, numbers: int, products: int) -> None:
        self.numbers -= numbers
        self.products -= products
        short = "numbers" if self.numbers < 0 else "products" if self.products < 0 else None
        if short is not None:
            raise TooLarge(
                f"the net takes too many {short} for each record by here for so small a file; "
                "give the inputs' shapes if that is meant"
            )
