"""Reads ahead: a thread makes the next items while the one before is in use."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import Empty, Full, Queue
from typing import TypeVar

T = TypeVar("T")

_LOOK = 0.2
"""Seconds between looks at whether anybody still wants items."""


def ahead(items: Iterable[T], room: int = 1) -> Iterator[T]:
    """The items in order; up to ``room`` are ready before they are asked for.

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
