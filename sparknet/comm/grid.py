"""Grid: which workers speak with which, and in which order their numbers are added.

Up to `DIRECT` workers speak all with all.  More of them stand in a grid of several axes, 64 in one
of 4 x 4 x 4, and each speaks with the others of its line along each axis: 9 connections, not 63.
A mean is taken along one axis after the other, as recursive halving and doubling does with lines
of two (Thakur, Rabenseifner, Gropp, 2005): no more bytes travel than between all pairs.

The places of the grid are a product of 2, 3, 4 and 5.  Where there are more workers than places,
the first places have two: a host, and a guest, which speaks with the host alone.

All of this follows from the number of workers, and so do the bits of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from sparknet.native import NDArray

DIRECT = 12
"""The most workers that speak all with all."""

Span = tuple[int, int]


def bounds(size: int, workers: int) -> list[Span]:
    """Return the slices of a buffer that so many workers own."""
    return list(pairwise(size * rank // workers for rank in range(workers + 1)))


class Grid:
    """The places of so many workers."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.places = size
        self.axes: tuple[int, ...] = (size,)
        if size > DIRECT:
            self.places, self.axes = next(
                (count, factors) for count in range(size, 0, -1) if (factors := _factors(count))
            )
        self.guests = size - self.places
        steps = [self.places]
        for length in self.axes:
            steps.append(steps[-1] // length)
        self._steps = steps[1:]
        """How many places apart two neighbours of a line are, by axis."""
        self._known: dict[int, list[int]] = {}

    @property
    def is_direct(self) -> bool:
        return len(self.axes) == 1 and not self.guests

    def first(self, place: int) -> int:
        """Return the rank of a place's host; those of a place follow each other."""
        return place + min(place, self.guests)

    def place(self, rank: int) -> int:
        return rank // 2 if rank < 2 * self.guests else rank - self.guests

    def is_guest(self, rank: int) -> bool:
        return rank < 2 * self.guests and rank % 2 == 1

    def guest(self, rank: int) -> int | None:
        """Return the guest of a host, if it has one."""
        return rank + 1 if rank < 2 * self.guests and rank % 2 == 0 else None

    def coordinate(self, rank: int, axis: int) -> int:
        return self.place(rank) // self._steps[axis] % self.axes[axis]

    def line(self, rank: int, axis: int) -> list[int]:
        """Return the hosts of the line along an axis, in order; a host's own rank is one of
        them.
        """
        begin = self.place(rank) - self.coordinate(rank, axis) * self._steps[axis]
        return [self.first(begin + one * self._steps[axis]) for one in range(self.axes[axis])]

    def links(self, rank: int) -> list[int]:
        """Return the workers that a worker speaks with, in order."""
        if rank not in self._known:
            self._known[rank] = self._links(rank)
        return self._known[rank]

    def _links(self, rank: int) -> list[int]:
        if self.is_guest(rank):
            return [rank - 1]
        peers = {one for axis in range(len(self.axes)) for one in self.line(rank, axis)}
        return sorted((peers | ({rank + 1} if self.guest(rank) else set())) - {rank})

    def shares(self, rank: int, axis: int) -> list[Span]:
        """Return the workers whose slices each one of a line has after this axis."""
        block = self._steps[axis] * self.axes[axis]
        begin = self.place(rank) // block * block
        ends = [begin + one * self._steps[axis] for one in range(self.axes[axis] + 1)]
        return list(pairwise(self.first(end) for end in ends))

    def mean(self, parts: Sequence[NDArray], weights: Sequence[float], into: NDArray) -> NDArray:
        """Return the weighted mean of all workers' parts, in the order in which a grid adds
        them.
        """
        if self.is_direct:
            return NDArray.weighted_mean(parts, weights, into)
        last = [(self.first(at), self.first(at + 1)) for at in range(self.places)]
        groups = [[*range(*span)] for span in last]
        arrays, sums = list(parts), list(weights)
        for axis in range(-1, len(self.axes)):
            if axis >= 0:
                step = self._steps[axis]
                groups = [[*range(at, len(arrays), step)] for at in range(step)]
            arrays = [
                self.partial(
                    axis,
                    [arrays[one] for one in group],
                    [sums[one] for one in group],
                    into if len(groups) == 1 else None,
                )
                for group in groups
            ]
            sums = [sum(sums[one] for one in group) for group in groups]
        return arrays[0]

    def partial(
        self,
        axis: int,
        parts: Sequence[NDArray],
        weights: Sequence[float],
        into: NDArray | None = None,
    ) -> NDArray:
        """Return the mean along an axis; before the last one it may be of parts that weigh
        nothing.
        """
        if len(parts) == 1:
            return parts[0]
        if axis < len(self.axes) - 1 and not any(weights):
            weights = [1.0] * len(parts)
        return NDArray.weighted_mean(parts, weights, into)

    def sums(self, weights: Sequence[float], rank: int, axis: int) -> list[float]:
        """Return the weights of what each one of a line has before this axis."""
        totals = [sum(weights[self.first(at) : self.first(at + 1)]) for at in range(self.places)]
        for before in range(axis):
            step = self._steps[before]
            totals = [sum(totals[at::step]) for at in range(step)]
        at = self.place(rank) % self._steps[axis]
        return totals[at :: self._steps[axis]]


@lru_cache
def grid_of(size: int) -> Grid:
    """Return the grid of so many workers."""
    return Grid(size)


def _factors(count: int) -> tuple[int, ...]:
    """Return the lengths of lines, longest first; nothing if there are none that long."""
    factors = []
    for length in (5, 4, 3, 2):
        while count % length == 0:
            factors.append(length)
            count //= length
    return tuple(factors) if count == 1 else ()
