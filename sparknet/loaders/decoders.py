"""Encoded images, decoded side by side: the decoder works without the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sparknet.native import threads

A = TypeVar("A")
B = TypeVar("B")
MOST = 8


class Decoders:
    """A pool that starts at its first use."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """work(item) for each, in order."""
        count = min(threads(), MOST)
        if count < 2:
            return [work(item) for item in items]
        if self._pool is None or self._process != os.getpid():
            # A forked child has the pool, but not its threads.
            self._process = os.getpid()
            self._pool = ThreadPoolExecutor(count, "sparknet-decode")
        return list(self._pool.map(work, items))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


SHARED = Decoders()
"""For those who decode now and then: its threads stay."""
