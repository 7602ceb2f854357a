"""Workers that meet: as threads over either comm, and as processes over real sockets."""

import threading
from collections.abc import Callable, Sequence
from contextlib import contextmanager

from sparknet.comm.collectives import Comm
from sparknet.comm.local_comm import LocalComm
from sparknet.comm.mesh import Listener
from sparknet.comm.tcp_comm import TcpComm

SECRET = b"a secret of this run and no other"


def in_threads(calls):
    """What each call gave, or the exception that it raised; all of them at once."""
    found = [None] * len(calls)

    def run(index: int) -> None:
        try:
            found[index] = calls[index]()
        except Exception as error:
            found[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def together(comms, work):
    """What ``work`` gives on each worker; the first exception is raised."""

    def bound(comm):
        return lambda: work(comm)

    found = in_threads([bound(comm) for comm in comms])
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def connected(
    listeners: Sequence[Listener], deadline: float = 20.0, secret: bytes = SECRET
) -> list[TcpComm]:
    addresses = [listener.address for listener in listeners]

    def bound(rank: int) -> Callable[[], TcpComm]:
        return lambda: TcpComm.connect(listeners[rank], rank, addresses, secret, deadline)

    found = in_threads([bound(rank) for rank in range(len(listeners))])
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


@contextmanager
def group(kind, size, host="127.0.0.1"):
    """Comms of one process: "local", or "tcp" over real connections."""
    comms: Sequence[Comm]
    if kind == "local":
        comms = LocalComm.group(size)
    else:
        comms = connected([Listener(host) for _ in range(size)])
    try:
        yield list(comms)
    finally:
        for comm in comms:
            comm.close()
