"""Costs: what a step and a synchronisation take, and the length of rounds that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Spent = list[float]
"""A worker's round: steps, seconds computing, seconds communicating."""

RATIO = 5.0
"""A round takes so many times as long as a synchronisation: SparkNet's advice is τ ≈ 5 S, S in
units of steps (Moritz et al., 2016)."""
LONGEST = 500


@dataclass(frozen=True)
class Costs:
    """C and S of SparkNet's section 3.1."""

    step: float
    """C, the seconds of a step."""
    sync: float
    """S, the seconds of a synchronisation, with the waiting for other workers."""

    @classmethod
    def of(cls, sums: Spent, rounds: float) -> Costs:
        """The means, from sums over so many rounds."""
        steps, computing, communicating = sums
        return cls(computing / steps, communicating / rounds)

    def length(self, ratio: float = RATIO, longest: float = LONGEST) -> float:
        """τ, the steps of a round that takes ``ratio`` times as long as its synchronisation."""
        wanted = ratio * self.sync / self.step if self.step > 0 else float(longest)
        return min(max(wanted, 1.0), float(longest))

    def share(self, steps: float) -> float:
        """The share of communication in rounds of so many steps."""
        total = steps * self.step + self.sync
        return self.sync / total if total else 0.0

    def __str__(self) -> str:
        return f"a step takes {1e3 * self.step:.3g} ms, a synchronisation {1e3 * self.sync:.3g} ms"


def added(sums: Spent, workers: Sequence[Spent], memory: float = 1.0) -> Spent:
    """The sums with the mean of the workers' round; earlier rounds count ``memory`` times."""
    means = [sum(values) / len(workers) for values in zip(*workers, strict=True)]
    return [memory * old + new for old, new in zip(sums, means, strict=True)]
