"""Shard: a worker's slice of a buffer that all workers push to and pull from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from threading import Lock

from sparknet.errors import CommError
from sparknet.native import NDArray
from sparknet.training.comm import Accept, Server, Span


class Shard:
    """The slice itself, on the worker that owns it."""

    def __init__(self, buffer: NDArray, span: Span, accept: Accept) -> None:
        self.span = span
        self._values = buffer[span[0] : span[1]].copy()
        self._accept, self._version, self._lock = accept, 0, Lock()

    def add(self, delta: NDArray, version: int) -> int:
        """Add a contribution made from ``version``; returns its staleness.

        A version is the number of contributions so far, dropped ones included.
        """
        with self._lock:
            staleness = self._version - version
            if staleness < 0:
                raise CommError(
                    f"version {version} is still to come: this shard has {self._version}"
                )
            factor = self._accept(staleness)
            if factor and delta.size:
                self._values.axpy(factor, delta)
            self._version += 1
            return staleness

    def copy(self, into: NDArray) -> int:
        """Copy the values into ``into``; returns their version."""
        with self._lock:
            if into.size:
                into.copy_from(self._values)
            return self._version


class ShardedServer(Server):
    """Splits pushes and pulls into the owners' parts."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans

    def push(self, delta: NDArray, versions: Sequence[int]) -> list[int]:
        return [
            self._push(owner, delta[begin:end], versions[owner])
            for owner, (begin, end) in enumerate(self._spans)
        ]

    def pull(self, into: NDArray) -> list[int]:
        return [
            self._pull(owner, into[begin:end]) for owner, (begin, end) in enumerate(self._spans)
        ]

    @abstractmethod
    def _push(self, owner: int, part: NDArray, version: int) -> int: ...

    @abstractmethod
    def _pull(self, owner: int, into: NDArray) -> int: ...
