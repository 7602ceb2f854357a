"""The order in which workers see records: a function of the seed and the epoch alone.

A shuffled epoch is a keyed permutation that is computed, not stored: a Feistel network on
pairs of numbers (Black and Rogaway, Ciphers with Arbitrary Finite Domains, 2002).  So a
billion records need no table, any place can be found at once, and the numbers are the same
on every machine and with every release of numpy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet import renamed
from sparknet.errors import ArrayError
from sparknet.loaders.records import Rows

Words = np.ndarray[Any, np.dtype[np.uint64]]

ROUNDS = 6
MASK = 2**64 - 1
AHEAD, AT_ONCE = 1 << 12, 1 << 14
Cursor = Mapping[str, Any]


@dataclass(frozen=True)
class Deal:
    """What workers that took different numbers of records have left of a stream of places.

    All places below ``base`` are taken.  From there on worker i of K = len(counts) has taken
    ``counts[i]`` places: base + i, base + i + K, …
    """

    base: int
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.base + sum(self.counts)

    def remaining(self, numbers: Rows) -> Rows:
        """Return the places that are left, by their number in ascending rows of K places."""
        remaining: Rows = numbers.copy()
        size, begin = len(self.counts), 0
        steps = sorted(set(self.counts))
        for row, end in zip(steps, [*steps[1:], None], strict=True):
            ranks = np.array([rank for rank, count in enumerate(self.counts) if count <= row])
            inside = numbers >= begin
            if end is not None:
                inside &= numbers < begin + (end - row) * len(ranks)
            rows, places = np.divmod(numbers[inside] - begin, len(ranks))
            remaining[inside] = self.base + (row + rows) * size + ranks[places]
            begin += 0 if end is None else (end - row) * len(ranks)
        return remaining


@renamed.fields(left="remaining")
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
        self._deals: list[Deal] = []
        """What earlier numbers of workers took of the stream, the first one first."""
        self._ahead: Rows = np.zeros(0, np.int64)

    def next(self, count: int) -> Rows:
        """Return this worker's next records, across the ends of epochs."""
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
        places = self._places(np.arange(count, dtype=np.int64))
        rows: Rows
        epochs, rows = np.divmod(places, self.length)
        return permuted(rows, self.length, self.seed, epochs) if self.shuffle else rows

    def _places(self, numbers: Rows) -> Rows:
        """Return the places in the stream of this worker's next records, by number."""
        places: Rows = self._round + self.rank + numbers * self.size
        for deal in reversed(self._deals):
            places = deal.remaining(places)
        return places

    @property
    def epoch(self) -> int:
        """The epoch of this worker's next record."""
        return int(self._places(np.zeros(1, np.int64))[0]) // self.length

    @property
    def place(self) -> int:
        """The cursor as one number: records that all workers together have been dealt."""
        return self._round + sum(deal.total for deal in self._deals)

    @property
    def remaining(self) -> int:
        """How many records this worker still gets in that epoch, where all took as many so far."""
        end = (self.epoch + 1) * self.length
        return -(-(end - self._round - self.rank) // self.size)

    @property
    def cursor(self) -> dict[str, Any]:
        """Where the workers are: the epoch, and the place in it of the next record of rank 0.

        It is the same for all workers that took the same number of records.  Where the number of
        workers has changed after they took different numbers, ``dealt`` says what they took, and
        the places are those of what they left.
        """
        epoch, position = divmod(self._round, self.length)
        deals = [[one.base, *one.counts] for one in self._deals]
        return {"epoch": epoch, "position": position, **({"dealt": deals} if deals else {})}

    def seek(self, cursor: Cursor) -> None:
        """Continue where a cursor was taken.

        ``{"of": cursors}`` continues after another number of workers, of whom each left its cursor:
        what they took is not dealt again, and what some of them left behind comes first.
        ``{"share": [taken, all]}`` continues behind the same share of these records.
        """
        if "of" in cursor:
            self._seek_behind(cursor["of"])
        elif "share" in cursor:
            count, whole = cursor["share"]
            self._round, self._deals = count * self.length // whole, []
        else:
            self._round, self._deals = self._place_of(cursor), self._deals_of(cursor)
        self._ahead = self._ahead[:0]

    def _seek_behind(self, cursors: Sequence[Cursor]) -> None:
        rounds = [self._place_of(one) for one in cursors]
        deals, base, size = self._deals_of(cursors[0]), min(rounds), len(rounds)
        if any(
            self._deals_of(one) != deals or (place - base) % size
            for one, place in zip(cursors, rounds, strict=True)
        ):
            raise ArrayError(f"{[*map(dict, cursors)]} are not the cursors of one run's workers")
        if max(rounds) == base:
            self._round, self._deals = base, deals
        else:
            counts = tuple((place - base) // size for place in rounds)
            self._round, self._deals = 0, [*deals, Deal(base, counts)]

    def _place_of(self, cursor: Cursor) -> int:
        epoch, position = cursor.get("epoch", -1), cursor.get("position", -1)
        if not (epoch >= 0 and 0 <= position < self.length):
            raise ArrayError(
                f"{dict(cursor)} is not a position in an order of {self.length} records"
            )
        place: int = epoch * self.length + position
        return place

    def _deals_of(self, cursor: Cursor) -> list[Deal]:
        return [Deal(base, tuple(counts)) for base, *counts in cursor.get("dealt", ())]


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
    distinct, owners = np.unique(epochs, return_inverse=True)
    keys = _keys(seed, distinct.astype(np.uint64))[:, owners.reshape(-1)]
    waiting = np.arange(len(out))
    while len(waiting):
        # The grid is a little larger than the data set: what falls outside goes round again.
        out[waiting] = _pass(out[waiting], left_size, right_size, keys[:, waiting])
        waiting = waiting[out[waiting] >= length]


def _pass(numbers: Words, left_size: int, right_size: int, keys: Words) -> Words:
    row, column = np.divmod(numbers, np.uint64(right_size))
    for first, second in keys.reshape(ROUNDS, 2, -1):
        row = (row + _mixed(column ^ first) % np.uint64(left_size)) % np.uint64(left_size)
        column = (column + _mixed(row ^ second) % np.uint64(right_size)) % np.uint64(right_size)
    places: Words = row * np.uint64(right_size) + column
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
