"""Compares the mean of CaffeNet's weights over processes with a plain copy of as many bytes.

    python -m benchmarks.comm
The copy goes through the same loopback, between as many processes: in a mean over K each sends
and receives 2 (K - 1) / K of the buffer, half before and half after the averaging.  In the copy
each process sends as much to the next one in a circle, and receives as much at the same time,
without computing.  The mean is measured with each seal; all take turns, and the ratios compare
turns of the same round.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

from sparknet.dist.comm import Comm
from sparknet.dist.handshake import make_secret
from sparknet.dist.mesh import Listener
from sparknet.dist.seal import AES_GCM, GMAC, HMAC, NONE
from sparknet.dist.tcp import TcpComm
from sparknet.native import NDArray, set_threads

FLOATS = 61_000_000
"""CaffeNet's parameters: 244 MB."""
PIECE = 1 << 20
WARM_UP = 2

SEALS = [NONE, GMAC, HMAC, AES_GCM]


class Circle:
    """A connection to the next process, and one from the previous process."""

    def __init__(self, server: socket.socket, following: tuple[str, int], nbytes: int) -> None:
        self._next = socket.create_connection(following)
        self._previous, _ = server.accept()
        self._source, self._target = bytearray(nbytes), memoryview(bytearray(nbytes))

    def copy(self) -> None:
        """Send to the next process and receive from the previous one at the same time."""
        sender = threading.Thread(target=self._next.sendall, args=(self._source,))
        sender.start()
        got = 0
        while got < len(self._target):
            into = self._target[got : got + PIECE]
            got += self._previous.recv_into(into, 0, socket.MSG_WAITALL)
        sender.join()


def worker(rank: int, size: int, floats: int, rounds: int, secret: bytes, main: Connection) -> None:
    """Connect to the others, measure copy and means in turn, and send the times to ``main``."""
    set_threads(max((os.cpu_count() or 1) // size, 1))
    server = socket.create_server(("127.0.0.1", 0))
    listeners = [Listener() for _ in SEALS]
    main.send(([listener.address for listener in listeners], server.getsockname()))
    addresses, servers = main.recv()
    circle = Circle(server, servers[(rank + 1) % size], 8 * floats * (size - 1) // size)
    buffer = NDArray.full((floats,), float(rank))
    with ExitStack() as stack:
        comms = [
            stack.enter_context(
                TcpComm.connect(
                    listener, rank, [one[number] for one in addresses], secret, seal=SEALS[number]
                )
            )
            for number, listener in enumerate(listeners)
        ]
        turns: list[list[float]] = []
        for _ in range(rounds + WARM_UP):
            comms[0].barrier()
            seconds = [_seconds(circle.copy, comms[0])]
            seconds += [_seconds(partial(comm.mean, buffer), comm) for comm in comms]
            turns.append(seconds)
        assert float(buffer[0]) == float(buffer[floats - 1]) == (size - 1) / 2
    main.send(turns[WARM_UP:])


def _seconds(work: Callable[[], None], comm: Comm) -> float:
    """The seconds until all processes have finished ``work``."""
    begun = time.perf_counter()
    work()
    comm.barrier()
    return time.perf_counter() - begun


def measured(size: int, floats: int, rounds: int) -> list[list[float]]:
    """Seconds of a copy and of a mean with each seal, by round, measured by worker 0."""
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
    found: list[list[list[float]]] = [end.recv() for end in ends]
    for process in processes:
        process.join()
    return found[0]


def spread(values: list[float], digits: int = 3) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} .. {high:.{digits}f})"


def main() -> None:
    """Measure two and four workers, or the given numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("workers", nargs="*", type=int, default=[2, 4])
    parser.add_argument("--floats", type=int, default=FLOATS)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"\nmean of {4e-6 * options.floats:.1f} MB over processes; seconds: median (range)")
    print(f"{'workers':<8} {'seal':<8} {'mean':<24} {'to the plain copy':<24} to no seal")
    for size in options.workers:
        turns = measured(size, options.floats, options.rounds)
        print(f"{size:<8} {'copy':<8} {spread([turn[0] for turn in turns])}", flush=True)
        for number, seal in enumerate(SEALS, 1):
            means = spread([turn[number] for turn in turns])
            to_copy = spread([turn[number] / turn[0] for turn in turns], 2)
            to_none = spread([turn[number] / turn[1] for turn in turns], 2)
            print(f"{size:<8} {seal:<8} {means:<24} {to_copy:<24} {to_none}", flush=True)


if __name__ == "__main__":
    main()
