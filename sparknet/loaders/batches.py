"""Batches of records, made ahead in a thread; a cursor says where the next one begins."""

from __future__ import annotations

import atexit
import copy
import os
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, Full, Queue, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from sparknet.errors import ArrayError, FileError
from sparknet.loaders.order import Order
from sparknet.loaders.records import Batch, Records, columns_told

T = TypeVar("T")

_LOOK = 0.2
"""Seconds between looks at whether anybody still wants items."""


def ahead(items: Iterable[T], room: int = 1) -> Iterator[T]:
    """Yield the items in order; up to ``room`` are ready before they are asked for.

    An error of the items is raised where the failed item would come.  The thread ends with the
    items, or soon after this iterator is closed.
    """
    ready: Queue[tuple[T | None, BaseException | None]] = Queue(room)
    closed = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not closed.is_set():
            try:
                ready.put((item, error), timeout=_LOOK)
                return
            except Full:
                pass

    def work() -> None:
        try:
            for item in items:
                put(item, None)
                if closed.is_set():
                    return
            put(None, _Done())
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=work, name="sparknet-ahead", daemon=True)
    thread.start()
    try:
        while True:
            item, error = ready.get()
            if isinstance(error, _Done):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        closed.set()
        try:
            while True:
                ready.get_nowait()
        except Empty:
            pass


class _Done(Exception):
    """The items have ended."""


Array = np.ndarray[Any, np.dtype[np.float32]]
Arrays = Sequence[Array]

AHEAD = 2
"""Batches that are ready or being made while another is in use."""
_END = 10.0
"""Seconds that the interpreter waits at its exit for a batch in the making."""


class Maker(Protocol[T]):
    """Makes the batches of a source, one after the other."""

    def make(self, number: int, spare: T | None) -> T:
        """Batch `number`, in the memory of an earlier batch where that fits."""

    def close(self) -> None:
        """Close files and end threads."""


class Prefetch(Generic[T]):
    """The batches of one source, in order.

    The thread starts at the first `take`, and again in a forked child, at the batch that the
    child is to see next.  When the last owner is dropped, `stop` is called; it takes no
    lock, because a garbage collector may call it in any thread.
    """

    def __init__(self, open_maker: Callable[[int], Maker[T]]) -> None:
        self._open = open_maker
        self._taken = 0
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._orders: SimpleQueue[tuple[T | None] | None] = SimpleQueue()
        self._ready: SimpleQueue[T | BaseException] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def take(self) -> T:
        """Return the next batch; an error in making it is raised here."""
        if self._process != os.getpid():
            self._process, self._lock, self._thread = os.getpid(), threading.Lock(), None
        with self._lock:
            if self._thread is None:
                self._start()
            batch = self._ready.get()
            if isinstance(batch, BaseException):
                self._thread = None
                raise batch
            self._taken += 1
            return batch

    def give_back(self, spare: T | None) -> None:
        """Report a batch as used: another can be made, in its memory if that is given back."""
        self._orders.put((spare,))

    def stop(self) -> None:
        """End the thread when it has made what it is making."""
        self._orders.put(None)

    def close(self) -> None:
        """End the thread, and wait for that."""
        self.stop()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def restart(self, open_maker: Callable[[int], Maker[T]]) -> None:
        """Use another maker from the next batch on."""
        self.close()
        self._open = open_maker

    def _start(self) -> None:
        self._orders, self._ready = SimpleQueue(), SimpleQueue()
        for _ in range(AHEAD):
            self._orders.put((None,))
        work = (self._open, self._taken, self._orders, self._ready)
        self._thread = threading.Thread(target=_work, args=work, name="sparknet-data", daemon=True)
        _running[self._thread] = self._orders
        self._thread.start()


_running: WeakKeyDictionary[threading.Thread, SimpleQueue[Any]] = WeakKeyDictionary()
"""Threads, of dropped owners too, and their orders."""


@atexit.register
def _end_all() -> None:
    """End the threads: one that stops within h5py keeps h5py's lock, and the exit hangs."""
    running = [(thread, orders) for thread, orders in list(_running.items()) if thread.is_alive()]
    for _, orders in running:
        with suppress(Empty):
            while True:
                orders.get_nowait()
        orders.put(None)
    for thread, _ in running:
        thread.join(_END)


def _work(
    open_maker: Callable[[int], Maker[T]],
    number: int,
    orders: SimpleQueue[tuple[T | None] | None],
    ready: SimpleQueue[T | BaseException],
) -> None:
    maker: Maker[T] | None = None
    try:
        while (order := orders.get()) is not None:
            if maker is None:
                maker = open_maker(number)
            ready.put(maker.make(number, order[0]))
            number += 1
    except BaseException as error:
        ready.put(error)
    finally:
        if maker is not None:
            maker.close()


def room(shapes: Sequence[tuple[int, ...]], spare: Arrays | None) -> list[Array]:
    """Arrays of these shapes: those of an earlier batch, or new ones."""
    if spare is not None and [array.shape for array in spare] == list(shapes):
        return list(spare)
    return [np.empty(shape, np.float32) for shape in shapes]


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
        columns = columns_told(work.records.columns)
        return f"<Batches of {work.batch_size} of {len(work.records)} records{columns}>"

    def next(self) -> Batch:
        """Return the next batch, by column; it belongs to the caller."""
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
        """Close nothing: the records belong to the caller."""

    def _collect(self) -> Batch:
        parts: list[Batch] = []
        have = barren = 0
        epoch = self.order.epoch
        while have < self.work.batch_size:
            if self.work.ragged and have and self.order.epoch != epoch:
                break
            epoch = self.order.epoch
            count = self.work.batch_size - have
            count = min(count, self.order.remaining) if self.work.ragged else count
            part = self.work.records.take(self.order.next(count))
            got = len(next(iter(part.values())))
            barren = 0 if got else barren + count
            if barren >= 2 * len(self.work.records):
                raise FileError("records", "cannot be read: every one of them is damaged")
            parts.append(part)
            have += got
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
