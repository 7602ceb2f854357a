"""LocalComm: the comm of workers that are threads of one process."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from sparknet.comm.codecs import Codec
from sparknet.comm.collectives import Accept, Comm, Server
from sparknet.comm.parameter_server import Shard, ShardedServer
from sparknet.errors import CommError, PeerLost
from sparknet.native import NDArray

DEADLINE = 60.0


class _Meeting:
    """A barrier of a group's workers, with a value of each for the others to read.

    It is no threading.Barrier: breaking that one also breaks the wait that just succeeded, for
    the threads that have not woken up from it yet.
    """

    def __init__(self, size: int) -> None:
        self.table: list[Any] = [None] * size
        self._changed = threading.Condition()
        self._arrived, self._count = 0, 0
        self._closed: set[int] = set()

    def meet(self, rank: int) -> None:
        """Wait for all workers; CommError or PeerLost if one never comes."""
        with self._changed:
            self._check(rank)
            count = self._count
            self._arrived += 1
            if self._arrived == len(self.table):
                self._arrived, self._count = 0, count + 1
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._count != count or self._closed)
            if self._count == count:
                self._check(rank)

    def leave(self, rank: int) -> None:
        with self._changed:
            self._closed.add(rank)
            self._changed.notify_all()

    def _check(self, rank: int) -> None:
        if rank in self._closed:
            raise CommError("this comm was closed")
        if self._closed:
            raise PeerLost(min(self._closed), "this process", "it ended")


class LocalComm(Comm):
    """Reads the other workers' buffers while they wait.

    A thread cannot be lost as a machine can, so the others wait without a limit for one that has
    not closed its comm.
    """

    def __init__(self, rank: int, meeting: _Meeting, deadline: float) -> None:
        super().__init__(rank, len(meeting.table), deadline)
        self._meeting = meeting

    @classmethod
    def group(cls, size: int, deadline: float = DEADLINE) -> list[LocalComm]:
        """Return the comms of a group, one for each worker."""
        meeting = _Meeting(size)
        return [cls(rank, meeting, deadline) for rank in range(size)]

    def server(self, buffer: NDArray, accept: Accept, codec: Codec | None = None) -> Server:
        shards = self._laid(Shard(self, buffer, accept, codec))
        self._meet()
        return LocalServer(shards, self, buffer, codec)

    def close(self) -> None:
        """Leave the group; workers that wait for this one get an error at once."""
        self._meeting.leave(self.rank)

    def _exchange(self, outgoing: Sequence[memoryview], incoming: Sequence[memoryview]) -> None:
        laid = self._laid(outgoing)
        for rank in self._all:
            if rank != self.rank:
                incoming[rank][:] = laid[rank][self.rank]
                self.traffic.sent += outgoing[rank].nbytes
                self.traffic.received += incoming[rank].nbytes
        self._meet()

    def _gather(self, value: Any) -> list[Any]:
        laid = self._laid(json.dumps(value))
        self._meet()
        return [json.loads(text) for text in laid]

    def _laid(self, value: Any) -> list[Any]:
        """Return the values of all workers, which may be read until `_meet`."""
        self._meeting.table[self.rank] = value
        self._meet()
        return list(self._meeting.table)

    def _meet(self) -> None:
        self._meeting.meet(self.rank)


class LocalServer(ShardedServer):
    def __init__(
        self, shards: Sequence[Shard], comm: Comm, buffer: NDArray, codec: Codec | None
    ) -> None:
        super().__init__(comm, buffer, shards[comm.rank], codec)
        self._shards = shards

    def _push(self, owner: int, data: memoryview, version: int) -> int:
        return self._shards[owner].add(self._comm.rank, data, version)

    def _pull(self, owner: int, into: memoryview, exact: bool) -> int:
        return self._shards[owner].copy(self._comm.rank, into, exact)

    def raise_hand(self, more: int) -> int:
        return self._shards[0].raise_hand(more)
