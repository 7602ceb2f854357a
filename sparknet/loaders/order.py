"""The order in which workers see records: a function of the seed and the epoch alone.

A shuffled epoch is a keyed permutation that is computed, not stored: a Feistel network on
pairs of numbers (Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002).  So a
billion records need no table, any place can be found at once, and the numbers are the same
on every machine and with every release of numpy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparknet.errors import ArrayError
from sparknet.loaders.records import Rows

Words = np.ndarray[Any, np.dtype[np.uint64]]

ROUNDS = 6
MASK = 2**64 - 1
AHEAD, AT_ONCE = 1 << 12, 1 << 14


class Order:
    """Endless epochs of `length` records, dealt out to `size` workers like cards.

    All epochs are one stream; of that, worker `rank` gets every size-th record.  So in each
    epoch every record comes exactly once over all workers, no worker gets ahead of the
    others, and K workers with batches of b see, step by step, what one sees with batches of
    K * b.
    """

    def __init__(
        self, length: int, seed: int = 0, shuffle: bool = True, rank: int = 0, size: int = 1
    ) -> None:
        if length < 1:
            raise ArrayError(f"an order of {length} records is too small: at least 1 is needed")
        if not 0 <= rank < size:
            raise ArrayError(f"worker {rank} of {size}: ranks run from 0 to size - 1")
        self.length, self.seed, self.shuffle = length, seed, shuffle
        self.rank, self.size = rank, size
        self._round = 0
        self._ahead: Rows = np.zeros(0, np.int64)

    def next(self, count: int) -> Rows:
        """The next records of this worker, across the ends of epochs."""
        if count < 0:
            raise ArrayError(f"{count} records cannot be had")
        if len(self._ahead) < count:
            self._ahead = self._computed(max(count, AHEAD))
        rows: Rows = self._ahead[:count].copy()
        self._ahead = self._ahead[count:]
        self._round += count * self.size
        return rows

    def _computed(self, count: int) -> Rows:
        """More than are wanted: a few cost as much as thousands."""
        places = self._round + self.rank + np.arange(count, dtype=np.int64) * self.size
        rows: Rows
        epochs, rows = np.divmod(places, self.length)
        return permuted(rows, self.length, self.seed, epochs) if self.shuffle else rows

    @property
    def epoch(self) -> int:
        """The epoch of this worker's next record."""
        return (self._round + self.rank) // self.length

    @property
    def place(self) -> int:
        """The cursor as one number: records that all workers together have been dealt."""
        return self._round

    @property
    def left(self) -> int:
        """How many records this worker still gets in that epoch."""
        end = (self.epoch + 1) * self.length
        return -(-(end - self._round - self.rank) // self.size)

    @property
    def cursor(self) -> dict[str, int]:
        """Where the workers are: the epoch, and the place in it of the next record of rank 0.

        It is the same for all workers that took the same number of records.  Resuming with
        another number of workers then loses and repeats nothing.
        """
        epoch, position = divmod(self._round, self.length)
        return {"epoch": epoch, "position": position}

    def seek(self, cursor: Mapping[str, int]) -> None:
        """Continue where a cursor was taken."""
        epoch, position = cursor.get("epoch", -1), cursor.get("position", -1)
        if not (epoch >= 0 and 0 <= position < self.length):
            raise ArrayError(
                f"{dict(cursor)} is not a position in an order of {self.length} records"
            )
        self._round = epoch * self.length + position
        self._ahead = self._ahead[:0]


def permuted(places: Rows, length: int, seed: int, epochs: Rows) -> Rows:
    """Which records lie at these places of shuffled epochs."""
    out = np.array(places, np.uint64)
    for begin in range(0, len(out), AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        _permute(out[part], length, seed, epochs[part])
    rows: Rows = out.astype(np.int64)
    return rows


def _permute(out: Words, length: int, seed: int, epochs: Rows) -> None:
    left_size = math.isqrt(length - 1) + 1
    right_size = -(-length // left_size)
    known, owners = np.unique(epochs, return_inverse=True)
    keys = _keys(seed, known.astype(np.uint64))[:, owners.reshape(-1)]
    waiting = np.arange(len(out))
    while len(waiting):
        # The grid is a little larger than the data set: what falls outside goes round again.
        out[waiting] = _pass(out[waiting], left_size, right_size, keys[:, waiting])
        waiting = waiting[out[waiting] >= length]


def _pass(numbers: Words, left_size: int, right_size: int, keys: Words) -> Words:
    left, right = np.divmod(numbers, np.uint64(right_size))
    for first, second in keys.reshape(ROUNDS, 2, -1):
        left = (left + _mixed(right ^ first) % np.uint64(left_size)) % np.uint64(left_size)
        right = (right + _mixed(left ^ second) % np.uint64(right_size)) % np.uint64(right_size)
    places: Words = left * np.uint64(right_size) + right
    return places


def _keys(seed: int, epochs: Words) -> Words:
    """Two for each round, by epoch."""
    start = _mixed(_mixed(np.array([seed & MASK], np.uint64)) + epochs)
    steps = np.arange(1, 2 * ROUNDS + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return _mixed(start + steps[:, np.newaxis])


def _mixed(words: Words) -> Words:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words
