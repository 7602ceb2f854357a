"""The mean of CaffeNet's weights over processes, against a plain copy of as many bytes.

    python -m benchmarks.comm
The copy goes through the same loopback, between as many processes: in a mean over K each sends
and receives 2 (K - 1) / K of the buffer, half before and half after the averaging.  In the copy
each process sends as much to the next one in a circle, and receives as much, at once, with
nothing computed.  Both take turns; the ratio is of two neighbouring turns.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import threading
import time
from multiprocessing import get_context
from multiprocessing.connection import Connection

from sparknet.dist.auth import make_secret
from sparknet.dist.mesh import Listener
from sparknet.dist.tcp import TcpComm
from sparknet.native import NDArray, set_threads

FLOATS = 61_000_000
"""CaffeNet's parameters: 244 MB."""
PIECE = 1 << 20
WARM_UP = 2

Pair = tuple[float, float]


class Circle:
    """A connection to the next process and one from the previous."""

    def __init__(self, server: socket.socket, following: tuple[str, int], nbytes: int) -> None:
        self._next = socket.create_connection(following)
        self._previous, _ = server.accept()
        self._source, self._target = bytearray(nbytes), memoryview(bytearray(nbytes))

    def copy(self) -> None:
        """Send to the one, and receive from the other, at once."""
        sender = threading.Thread(target=self._next.sendall, args=(self._source,))
        sender.start()
        got = 0
        while got < len(self._target):
            into = self._target[got : got + PIECE]
            got += self._previous.recv_into(into, 0, socket.MSG_WAITALL)
        sender.join()


def worker(rank: int, size: int, floats: int, rounds: int, secret: bytes, main: Connection) -> None:
    """Meets the others, takes both in turn, and sends its pairs of seconds home."""
    set_threads(max((os.cpu_count() or 1) // size, 1))
    listener, server = Listener(), socket.create_server(("127.0.0.1", 0))
    main.send((listener.address, server.getsockname()))
    addresses, servers = main.recv()
    circle = Circle(server, servers[(rank + 1) % size], 8 * floats * (size - 1) // size)
    buffer = NDArray.full((floats,), float(rank))
    with TcpComm.connect(listener, rank, addresses, secret) as comm:
        pairs: list[Pair] = []
        for _ in range(rounds + WARM_UP):
            comm.barrier()
            begun = time.perf_counter()
            circle.copy()
            comm.barrier()
            copied = time.perf_counter()
            comm.mean(buffer)
            comm.barrier()
            pairs.append((time.perf_counter() - copied, copied - begun))
        assert float(buffer[0]) == float(buffer[floats - 1]) == (size - 1) / 2
    main.send(pairs[WARM_UP:])


def measured(size: int, floats: int, rounds: int) -> list[Pair]:
    """Seconds of a mean and of a copy, by round, as worker 0 saw them."""
    context, secret = get_context("spawn"), make_secret()
    ends, processes = [], []
    for rank in range(size):
        end, theirs = context.Pipe()
        arguments = (rank, size, floats, rounds, secret, theirs)
        processes.append(context.Process(target=worker, args=arguments))
        processes[-1].start()
        ends.append(end)
    places = [end.recv() for end in ends]
    for end in ends:
        end.send(([listener for listener, _ in places], [server for _, server in places]))
    found: list[list[Pair]] = [end.recv() for end in ends]
    for process in processes:
        process.join()
    return found[0]


def spread(values: list[float], digits: int = 3) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} .. {high:.{digits}f})"


def main() -> None:
    """Two and four workers, or as many as asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("workers", nargs="*", type=int, default=[2, 4])
    parser.add_argument("--floats", type=int, default=FLOATS)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"\nmean of {4e-6 * options.floats:.1f} MB over processes; seconds: median (range)")
    print(f"{'workers':<8} {'mean':<24} {'plain copy':<24} ratio")
    for size in options.workers:
        pairs = measured(size, options.floats, options.rounds)
        means, copies = ([pair[i] for pair in pairs] for i in (0, 1))
        ratios = [mean / copy for mean, copy in pairs]
        print(f"{size:<8} {spread(means):<24} {spread(copies):<24} {spread(ratios, 2)}", flush=True)


if __name__ == "__main__":
    main()
