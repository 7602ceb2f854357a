"""The counter-based random numbers of the native engine (native/engine/random.hpp), as tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_ALL = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mixed(x: int) -> int:
    """Return the finalizer of SplitMix64."""
    x &= _ALL
    x = ((x ^ (x >> 30)) * _FIRST) & _ALL
    x = ((x ^ (x >> 27)) * _SECOND) & _ALL
    return x ^ (x >> 31)


def signed(x: int) -> int:
    """Return the number with a sign that has these 64 bits."""
    return x - (1 << 64) if x >> 63 else x


def shifted(x: Tensor, by: int) -> Tensor:
    """Return a shift of 64 bits that have no sign."""
    return (x >> by) & ((1 << (64 - by)) - 1)


@dataclass(frozen=True)
class Draw:
    """One stream of numbers; a key on the device may change between passes."""

    key: int | Tensor

    def bits(self, count: int, device: torch.device) -> Tensor:
        """Return the first numbers, each of 64 bits."""
        return self.bits_of(torch.arange(count, dtype=torch.int64, device=device))

    def bits_of(self, numbers: Tensor) -> Tensor:
        """Return the bits of the numbers in these places of the stream."""
        key = self.key if isinstance(self.key, Tensor) else signed(self.key)
        x = (numbers * signed(GOLDEN)).add_(key)
        x = (x ^ shifted(x, 30)).mul_(signed(_FIRST))
        x = (x ^ shifted(x, 27)).mul_(signed(_SECOND))
        return x ^ shifted(x, 31)

    def top40(self, count: int, device: torch.device) -> Tensor:
        """Return the first 40 bits of each, as the native Dropout compares them."""
        return shifted(self.bits(count, device), 24)

    def uniform(self, count: int, device: torch.device) -> Tensor:
        """Return numbers in [0, 1)."""
        return shifted(self.bits(count, device), 40).to(torch.float32) * 2.0**-24


class Random:
    """The numbers of one layer."""

    def __init__(self, seed: int, layer: int) -> None:
        start = (seed * GOLDEN + layer + 1) & _ALL
        self._seed = mixed(start ^ GOLDEN)
        self.draws = 0

    def draw(self) -> Draw:
        self.draws += 1
        return Draw(mixed(self._seed + self.draws))


def seed_of_first_layer(seed: int, layer: int) -> int:
    """Return the seed of a net whose first layer draws what this layer of the other net does."""
    return (seed + layer * pow(GOLDEN, -1, 1 << 64)) & _ALL
