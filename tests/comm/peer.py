"""A worker in a process of its own, which a test tells what to do, stops and kills."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

from sparknet.comm.mesh import Listener
from sparknet.comm.tcp_comm import TcpComm
from sparknet.errors import CommError
from sparknet.native import NDArray
from tests.comm.groups import SECRET

_SPAWN = get_context("spawn")


def _run(rank: int, deadline: float, orders: Connection) -> None:
    """Carry out orders: the name of an operation, and the size of its buffer."""
    listener = Listener()
    orders.send(listener.address)
    with TcpComm.connect(listener, rank, orders.recv(), SECRET, deadline) as comm:
        orders.send("here")
        while (order := orders.recv()) is not None:
            orders.send(_done(comm, *order))


def _done(comm, name, size):
    try:
        if name == "mean":
            comm.mean(NDArray.full((size,), float(comm.rank)))
        elif name == "server":
            server = comm.server(NDArray.zeros((size,)), lambda staleness: 1.0)
            server.pull(NDArray.zeros((size,)))
        else:
            comm.barrier()
    except CommError as error:
        return error
    return "done"


class Peer:
    """The test's end of a worker."""

    def __init__(self, rank: int, deadline: float) -> None:
        self.orders, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_run, args=(rank, deadline, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def tell(self, name: str, size: int = 0) -> None:
        self.orders.send((name, size))

    def told(self):
        """What came of an order."""
        assert self.orders.poll(30)
        return self.orders.recv()

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def end(self):
        self.process.kill()
        self.process.join()
        self.orders.close()


@contextmanager
def peers(count: int, deadline: float) -> Iterator[tuple[TcpComm, Sequence[Peer]]]:
    """This process is rank 0; the others are processes."""
    others = [Peer(rank, deadline) for rank in range(1, count + 1)]
    listener = Listener()
    try:
        addresses = [listener.address, *(other.told() for other in others)]
        for other in others:
            other.orders.send(addresses)
        comm = TcpComm.connect(listener, 0, addresses, SECRET, deadline)
        assert [other.told() for other in others] == ["here"] * count
        with comm:
            yield comm, others
    finally:
        for other in others:
            other.end()
