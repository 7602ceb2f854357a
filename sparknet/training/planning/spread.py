"""Spread: the mean of several runs and its standard error; Difference: of two sets of runs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt
from typing import TypeVar

Seed = TypeVar("Seed", bound=Hashable)

_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160),
    *(2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056),
    *(2.052, 2.048, 2.045, 2.042),
)
"""Student's t that 5 % exceed on both sides, for 1, 2, … degrees of freedom."""
_LIMIT = 1.96
"""The same for any number of them."""


@dataclass(frozen=True)
class Spread:
    """The mean of some values, and its standard error; nan for one value."""

    mean: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        found = list(values)
        count = len(found)
        if not count:
            return cls(nan, nan, 0)
        mean = sum(found) / count
        if count == 1 or not isfinite(mean):
            return cls(mean, nan, count)
        return cls(mean, sqrt(sum((one - mean) ** 2 for one in found) / (count - 1) / count), count)

    def text(self, scale: float = 1.0, digits: int | None = None, unit: str = "") -> str:
        """Such as 97.31 ± 0.12 %; to two digits of the error unless ``digits`` are given."""
        mean, error = scale * self.mean, scale * self.error
        if digits is None:
            digits = _digits(error if isfinite(error) and error else mean / 100)
        told = f"{mean:,.{digits}f}"
        return (f"{told} ± {error:.{digits}f}" if isfinite(error) else told) + unit

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class Difference:
    """How much larger the values of a second set are."""

    spread: Spread
    freedom: float
    """Degrees of freedom."""
    paired: bool
    """Whether each run is compared with that of the same seed."""

    @property
    def seen(self) -> bool | None:
        """Whether it is not 0, with 95 % confidence; None where too few runs say nothing."""
        error = self.spread.error
        if not isfinite(error) or self.freedom < 1:
            return None
        return abs(self.spread.mean) > critical(self.freedom) * error

    @property
    def verdict(self) -> str:
        if self.seen is None:
            return "one run says nothing of it"
        return (
            ("higher" if self.spread.mean > 0 else "lower") if self.seen else "no difference seen"
        )


def difference(first: Mapping[Seed, float], second: Mapping[Seed, float]) -> Difference:
    """Compare values by seed: in pairs where two seeds or more are in both sets, else Welch's way.

    Runs of the same seed share their random numbers, so their differences spread less.
    """
    shared = [seed for seed in first if seed in second]
    if len(shared) >= 2:
        return Difference(
            Spread.of(second[seed] - first[seed] for seed in shared), len(shared) - 1, True
        )
    one, other = Spread.of(first.values()), Spread.of(second.values())
    far, fewest = other.mean - one.mean, min(one.count, other.count)
    if fewest < 2:
        return Difference(Spread(far, nan, fewest), 0, False)
    parts = [(one.error**2, one.count - 1), (other.error**2, other.count - 1)]
    total = parts[0][0] + parts[1][0]
    freedom = total**2 / sum(v**2 / n for v, n in parts) if total else inf
    return Difference(Spread(far, sqrt(total), fewest), freedom, False)


def critical(freedom: float) -> float:
    """Student's t of 95 % confidence, between whole degrees of freedom linear in their inverse."""
    if freedom >= len(_T):
        return _LIMIT + (_T[-1] - _LIMIT) * len(_T) / freedom
    below = int(freedom)
    low, high = _T[below - 1], _T[below]
    return low + (high - low) * (1 / below - 1 / freedom) * below * (below + 1)


def _digits(error: float) -> int:
    """The decimals that show two digits of an error."""
    digits, size = 0, abs(error)
    while 0 < size < 9.5 and digits < 6:
        size, digits = size * 10, digits + 1
    return digits
