"""Batches made ahead of their use, in a thread of their own."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float32]]
Arrays = Sequence[Array]
T = TypeVar("T")

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
        """The next batch; an error in making it is raised here."""
        if self._process != os.getpid():
            self._process, self._lock, self._thread = os.getpid(), threading.Lock(), None
        with self._lock:
            if self._thread is None:
                self._start()
            made = self._ready.get()
            if isinstance(made, BaseException):
                self._thread = None
                raise made
            self._taken += 1
            return made

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
    """A thread that the interpreter's end stops within h5py keeps h5py's lock: the exit hung."""
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
