"""Commits: a mean changes the buffers of all workers that are left, or of none.

For runs in which those that are left go on.  Others have none: the copy makes a mean a fifth
slower.

A mean is written beside the buffer and copied into it when it is complete on this worker.  It stays
there until the next mean, which no worker begins before all have this one.  So when a worker is
lost, those that are left have taken the same means, but for the last one, and whoever has that one
can give it to the others: `Commits.settle`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from sparknet.native import NDArray


class Survivors(Protocol):
    """What the workers that are left have of their new `Comm`."""

    def gather(self, value: Any) -> list[Any]: ...

    def broadcast(self, buffer: NDArray, root: int = 0) -> None: ...


class Commits:
    """The means of one worker in one generation."""

    def __init__(self) -> None:
        self.done = 0
        """How many are complete."""
        self._room = NDArray.empty((0,))
        self._result = self._room
        self._pending: NDArray | None = None
        """The buffer of the mean that is being taken, or was when a worker was lost."""
        self._undo: list[tuple[NDArray, NDArray]] = []

    @contextmanager
    def mean(self, buffer: NDArray, errors: Sequence[NDArray] = ()) -> Iterator[NDArray]:
        """Gives the memory for a mean, which is copied into ``buffer`` when it is complete.

        ``errors`` change meanwhile; they are put back if the mean is not committed.
        """
        if self._room.size < buffer.size:
            self._room = NDArray.empty((buffer.size,))
        self._pending, self._result = buffer, self._room[: buffer.size]
        self._undo = [(one, one.copy()) for one in errors]
        yield self._result
        self._commit()

    def settle(self, comm: Survivors) -> bool:
        """Agree with those that are left, over their new comm, on the last mean.

        If one of them has it, all have it then, else none.  Returns whether this worker, if it was
        taking a mean, has it.
        """
        counts = [int(one) for one in comm.gather(self.done)]
        most = max(counts)
        if min(counts) < most:
            size = comm.gather(self._result.size)[counts.index(most)]
            given = self._result if self.done == most else NDArray.empty((size,))
            comm.broadcast(given, counts.index(most))
            if self.done < most:
                self._result = given
                self._commit()
        if self._pending is None:
            return True
        for array, before in self._undo:
            array.copy_from(before)
        self._forget()
        return False

    def _commit(self) -> None:
        if self._pending is not None:
            self._pending.copy_from(self._result)
        self.done += 1
        self._forget()

    def _forget(self) -> None:
        self._pending, self._undo = None, []
