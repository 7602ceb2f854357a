"""LocalComm: workers that are threads of one process."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from sparknet.dist.comm import Accept, Comm, Server
from sparknet.dist.shard import Shard, ShardedServer
from sparknet.errors import CommError, PeerLost
from sparknet.native import NDArray

DEADLINE = 60.0


class _Meeting:
    """Where the workers of a group meet, and lay down what the others may look at."""

    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size)
        self.table: list[Any] = [None] * size
        self.closed: set[int] = set()


class LocalComm(Comm):
    """Looks at the others' buffers while they wait."""

    def __init__(self, rank: int, meeting: _Meeting, deadline: float) -> None:
        super().__init__(rank, len(meeting.table), deadline)
        self._meeting = meeting

    @classmethod
    def group(cls, size: int, deadline: float = DEADLINE) -> list[LocalComm]:
        """One for each worker."""
        meeting = _Meeting(size)
        return [cls(rank, meeting, deadline) for rank in range(size)]

    def server(self, buffer: NDArray, accept: Accept) -> Server:
        mine = Shard(buffer, self.bounds(buffer.size)[self.rank], accept)
        shards = self._laid(mine)
        self._meet()
        return _LocalServer(shards, self)

    def close(self) -> None:
        """A thread that is gone while others wait is noticed at once."""
        self._meeting.closed.add(self.rank)
        self._meeting.barrier.abort()

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
        """What every worker laid down; it may be looked at until `_meet`."""
        self._meeting.table[self.rank] = value
        self._meet()
        return list(self._meeting.table)

    def _meet(self) -> None:
        try:
            self._meeting.barrier.wait(self.deadline)
        except threading.BrokenBarrierError:
            lost = self._meeting.closed - {self.rank}
            if lost:
                raise PeerLost(min(lost), "this process", "it ended") from None
            if self._meeting.closed:
                raise CommError("this comm was closed") from None
            raise CommError(f"some worker did not come within {self.deadline:g} s") from None


class _LocalServer(ShardedServer):
    def __init__(self, shards: Sequence[Shard], comm: LocalComm) -> None:
        super().__init__([shard.span for shard in shards])
        self._shards, self._comm = shards, comm

    def _push(self, owner: int, part: NDArray, version: int) -> int:
        if owner != self._comm.rank:
            self._comm.traffic.sent += part.nbytes
        return self._shards[owner].add(part, version)

    def _pull(self, owner: int, into: NDArray) -> int:
        if owner != self._comm.rank:
            self._comm.traffic.received += into.nbytes
        return self._shards[owner].copy(into)

    def close(self) -> None:
        """Nothing to stop."""
