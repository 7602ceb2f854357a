"""Sizes and values of drawn layers, by a seed."""

import math
import random
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

import sparknet.caffe as caffe
from tests.fuzz.kernels.sizes import channels, images, some

Array: TypeAlias = np.ndarray[Any, Any]
Shape = tuple[int, ...]
DRAWS = 20
"""Layers of each type."""
VALUES = 40_000
"""What a bottom may have."""


@dataclass(frozen=True)
class Case:
    """A layer's options and bottoms; ``fixed`` are bottoms that have no gradient in this case."""

    options: str
    inputs: tuple[Array, ...]
    tops: int = 1
    fixed: frozenset[int] = frozenset()
    phase: int = caffe.TRAIN
    tolerance: float = 1e-6
    """More where Caffe's gradient is by its own rule not quite that of the function."""


class Draw:
    """Sizes and values by a seed, the number of the draw."""

    def __init__(self, seed: int) -> None:
        self.sizes, self.values = random.Random(seed), np.random.default_rng(seed)
        self._number, self._combinations = seed, 1

    def one(self, *of):
        """The first choices of all draws go through their combinations; the others are drawn."""
        if self._combinations * len(of) > DRAWS:
            return self.sizes.choice(of)
        self._combinations *= len(of)
        self._number, digit = divmod(self._number, len(of))
        return of[digit]

    def yes(self) -> str:
        return str(self.one("true", "false"))

    def some(self, least: int, most: int) -> int:
        return some(self.sizes, least, most)

    def picture(self, least: int = 1, most: float = VALUES, wide: int = 1) -> Shape:
        """(count, channels, height, width); at least so many places of each channel."""
        while True:
            shape = images(self.sizes)
            places = shape[0] * shape[2] * shape[3]
            if math.prod(shape) <= most and places >= least and min(shape[2:]) >= wide:
                return shape

    def rows(self) -> Shape:
        """(records, numbers of each)."""
        return self.some(2, 256), min(channels(self.sizes), 150)

    def blob(self) -> Shape:
        return self.one(self.picture(4), self.rows())

    def normal(self, shape: Shape, by: float = 1.0) -> Array:
        return (self.values.normal(size=shape) * by).astype(np.float32)

    def between(self, low: float, high: float, shape: Shape) -> Array:
        return self.values.uniform(low, high, shape).astype(np.float32)

    def numbers(self, below: int, shape: Shape) -> Array:
        return self.values.integers(0, below, shape).astype(np.float32)

    def split(self, size: int, parts: int) -> list[int]:
        """Where to cut a size into parts, none of them empty."""
        return sorted(self.sizes.sample(range(1, size), parts - 1))
