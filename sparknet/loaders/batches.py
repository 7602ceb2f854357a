"""Batches of records, made ahead in a thread; a cursor says where the next one begins."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sparknet.errors import ArrayError, FileError
from sparknet.loaders.order import Order
from sparknet.loaders.prefetch import Prefetch
from sparknet.loaders.records import Array, Batch, Records, columns_told

Position = dict[str, int]
Transforms = Mapping[str, Callable[[Array, int], Any]]
"""By column: the rows of a batch, and the number of the first, to what the batch shall hold."""


@dataclass
class BatchWork:
    """What the batches are made of; `cursor` is where the one that is taken next begins."""

    records: Records
    batch_size: int
    order: Order
    ragged: bool
    transforms: Transforms
    cursor: Position = field(default_factory=dict)


class Batches:
    """Endless batches of `batch_size` records in an order; two are made ahead.

    With `ragged` no batch crosses the end of an epoch: the last one is smaller, or left out
    where this worker gets no more records.  A damaged record that its reader leaves out is
    replaced with the next one.  The transforms run in the thread as well and get the number of
    the first record, so that a batch depends on the cursor alone.
    """

    def __init__(
        self,
        records: Records,
        batch_size: int,
        order: Order | None = None,
        *,
        ragged: bool = False,
        transforms: Transforms | None = None,
    ) -> None:
        if batch_size < 1:
            raise ArrayError(f"a batch of {batch_size} records is too small: at least 1 is needed")
        order = copy.copy(order) if order is not None else Order(len(records))
        if order.length != len(records):
            raise ArrayError(f"an order of {order.length} records for {len(records)}")
        self._work = BatchWork(records, batch_size, order, ragged, transforms or {}, order.cursor)
        self._start()

    def __repr__(self) -> str:
        work = self._work
        told = columns_told(work.records.columns)
        return f"<Batches of {work.batch_size} of {len(work.records)} records{told}>"

    def next(self) -> Batch:
        """The next batch, by column; it belongs to the caller."""
        batch, cursor = self._prefetch.take()
        self._work.cursor = cursor
        self._prefetch.give_back(None)
        return batch

    def __iter__(self) -> Iterator[Batch]:
        return self

    __next__ = next

    @property
    def columns(self) -> Collection[str]:
        """The names of a batch's columns."""
        return self._work.records.columns.keys()

    @property
    def cursor(self) -> Position:
        """Where the next batch begins: small, of numbers only, and good for `seek`."""
        return dict(self._work.cursor)

    def seek(self, cursor: Mapping[str, int]) -> None:
        """Continue where a cursor was taken; the batches are the same, bit for bit."""
        order = copy.copy(self._work.order)
        order.seek(cursor)
        self.close()
        self._work.cursor = order.cursor
        self._start()

    def deal(self, rank: int, size: int, cursor: Mapping[str, Any]) -> None:
        """Go on as another of so many workers, where their cursor was taken."""
        order = copy.copy(self._work.order)
        order.rank, order.size = rank, size
        order.seek(cursor)
        self.close()
        self._work.order, self._work.cursor = order, order.cursor
        self._start()

    def close(self) -> None:
        """End the thread."""
        self._dropped.detach()
        self._prefetch.close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self._prefetch = Prefetch(partial(BatchMaker, self._work))
        self._dropped = weakref.finalize(self, self._prefetch.stop)


def one_pass(records: Records, batch_size: int) -> Iterator[Batch]:
    """Every record once, in stored order; the last batch holds what is left."""
    for begin in range(0, len(records), batch_size):
        yield records.take(slice(begin, min(begin + batch_size, len(records))))


class BatchMaker:
    """Makes batches of its work, one after the other, in the thread that asks for them.

    It begins at the cursor, so that a child process or a retry repeats nothing.
    """

    def __init__(self, work: BatchWork, number: int = 0) -> None:
        self.work, self.order = work, copy.copy(work.order)
        self.order.seek(work.cursor)

    def make(self, number: int = 0, spare: object = None) -> tuple[Batch, Position]:
        first = self.order.place
        batch = self._collect()
        for name, transform in self.work.transforms.items():
            batch[name] = transform(batch[name], first)
        return batch, self.order.cursor

    def close(self) -> None:
        """The records belong to the caller."""

    def _collect(self) -> Batch:
        parts: list[Batch] = []
        have = barren = 0
        epoch = self.order.epoch
        while have < self.work.batch_size:
            if self.work.ragged and have and self.order.epoch != epoch:
                break
            epoch = self.order.epoch
            wanted = self.work.batch_size - have
            wanted = min(wanted, self.order.left) if self.work.ragged else wanted
            part = self.work.records.take(self.order.next(wanted))
            got = len(next(iter(part.values())))
            barren = 0 if got else barren + wanted
            if barren >= 2 * len(self.work.records):
                raise FileError("records", "cannot be read: every one of them is damaged")
            parts.append(part)
            have += got
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
