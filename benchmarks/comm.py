"""Compares the mean of CaffeNet's weights over processes with gloo, and with a plain copy.

    python -m benchmarks.comm [2 4 8]
The copy goes through the same loopback, between as many processes: in a mean over K each sends
and receives 2 (K - 1) / K of the buffer, half before and half after the averaging.  In the copy
each process sends as much to the next one in a circle, and receives as much at the same time,
without computing.  Gloo is `torch.distributed.all_reduce`, where torch is installed; it sums, and
does not divide.  The mean is measured through shared memory, as workers of one machine take it, and
over TCP with each seal, as workers of several do.  All take turns, and the ratios compare turns of
the same round.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

from sparknet.comm.collectives import Comm, raw_bytes
from sparknet.comm.handshake import make_secret
from sparknet.comm.mesh import Listener
from sparknet.comm.shared_memory import SWITCH
from sparknet.comm.tcp_comm import TcpComm
from sparknet.comm.wire import AES_GCM, GMAC, HMAC, NONE
from sparknet.native import NDArray, set_threads

FLOATS = 61_000_000
"""CaffeNet's parameters: 244 MB."""
PIECE = 1 << 20
WARM_UP = 2

MEMORY = "through memory"
SEALS = {MEMORY: GMAC, **{f"over TCP, {seal}": seal for seal in (NONE, GMAC, HMAC, AES_GCM)}}
BARE = f"mean over TCP, {NONE}"


class Circle:
    """A connection to the next process, and one from the previous process."""

    def __init__(
        self,
        server: socket.socket,
        following: tuple[str, int],
        source: memoryview,
        target: memoryview,
    ) -> None:
        self._next = socket.create_connection(following)
        self._previous, _ = server.accept()
        self._source, self._target = source, target

    def copy(self) -> None:
        """Twice, send to the next process and receive from the previous one at the same time."""
        for _ in range(2):
            sender = threading.Thread(target=self._next.sendall, args=(self._source,))
            sender.start()
            got = 0
            while got < len(self._target):
                into = self._target[got : got + PIECE]
                got += self._previous.recv_into(into, 0, socket.MSG_WAITALL)
            sender.join()


def gloo(rank: int, size: int, store: str, values: NDArray) -> Callable[[], None] | None:
    """What sums the values by gloo; None without torch."""
    try:
        import torch
        import torch.distributed as torch_dist
    except ImportError:
        return None
    torch.set_num_threads(max((os.cpu_count() or 1) // size, 1))
    torch_dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size)
    tensor = torch.from_numpy(values.numpy())

    def reduce() -> None:
        torch_dist.all_reduce(tensor)

    return reduce


def worker(
    rank: int, size: int, floats: int, rounds: int, secret: bytes, store: str, main: Connection
) -> None:
    """Connect to the others, measure everything in turn, and send the times to ``main``."""
    set_threads(max((os.cpu_count() or 1) // size, 1))
    server = socket.create_server(("127.0.0.1", 0))
    listeners = [Listener() for _ in SEALS]
    main.send(([listener.address for listener in listeners], server.getsockname()))
    addresses, servers = main.recv()
    buffer, target = (NDArray.full((floats,), value) for value in (float(rank), 0.0))
    part = slice(0, floats * (size - 1) // size)
    views = [raw_bytes(one[part]) for one in (buffer, target)]
    circle = Circle(server, servers[(rank + 1) % size], *views)
    with ExitStack() as stack:
        comms = []
        for number, (way, seal) in enumerate(SEALS.items()):
            os.environ[SWITCH] = str(int(way == MEMORY))
            places = [one[number] for one in addresses]
            comm = TcpComm.connect(listeners[number], rank, places, secret, seal=seal)
            comms.append(stack.enter_context(comm))
        works = {"copy": circle.copy, "gloo": gloo(rank, size, store, target)}
        means = [partial(comm.mean, buffer) for comm in comms]
        works |= {f"mean {way}": mean for way, mean in zip(SEALS, means, strict=True)}
        turns: list[dict[str, float]] = []
        for _ in range(rounds + WARM_UP):
            comms[0].barrier()
            turns.append(
                {name: _seconds(work, comms[0]) for name, work in works.items() if work is not None}
            )
        assert float(buffer[0]) == float(buffer[floats - 1]) == (size - 1) / 2
    main.send(turns[WARM_UP:])


def _seconds(work: Callable[[], None], comm: Comm) -> float:
    """The seconds until all processes have finished ``work``."""
    begun = time.perf_counter()
    work()
    comm.barrier()
    return time.perf_counter() - begun


def measured(size: int, floats: int, rounds: int) -> list[dict[str, float]]:
    """Seconds of a copy, of gloo and of a mean each way, by round, measured by worker 0."""
    context, secret = get_context("spawn"), make_secret()
    ends, processes = [], []
    with tempfile.TemporaryDirectory() as folder:
        for rank in range(size):
            end, theirs = context.Pipe()
            arguments = (rank, size, floats, rounds, secret, f"file://{folder}/gloo", theirs)
            processes.append(context.Process(target=worker, args=arguments))
            processes[-1].start()
            ends.append(end)
        places = [end.recv() for end in ends]
        for end in ends:
            end.send(([listener for listener, _ in places], [server for _, server in places]))
        found: list[list[dict[str, float]]] = [end.recv() for end in ends]
        for process in processes:
            process.join()
    return found[0]


def spread(values: list[float], digits: int = 3) -> str:
    low, high = min(values), max(values)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} .. {high:.{digits}f})"


def main() -> None:
    """Measure two, four and eight workers, or the given numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("workers", nargs="*", type=int, default=[2, 4, 8])
    parser.add_argument("--floats", type=int, default=FLOATS)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"\nmean of {4e-6 * options.floats:.1f} MB over processes; medians (and ranges)")
    print("| workers | | seconds | to the copy | to gloo | to no seal |")
    print("|---|---|---|---|---|---|")
    for size in options.workers:
        turns = measured(size, options.floats, options.rounds)
        for name in turns[0]:
            cells = [spread([turn[name] for turn in turns])]
            for other in ("copy", "gloo", BARE):
                known = [turn[name] / turn[other] for turn in turns if other in turn]
                cells.append(spread(known, 2) if known and name != other else "")
            print(f"| {size} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
