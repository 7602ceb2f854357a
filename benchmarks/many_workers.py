"""Measures how workers of one machine come together: many of them, with a small buffer.

    python -m benchmarks.many_workers [64] [--over-tcp]
For each number of workers: the seconds from the first call until all are connected, the sockets and
threads of the worker that has the most, and the seconds of a barrier, of a mean, of a broadcast and
of a push and a pull, until the last worker has done it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from sparknet.comm.collectives import Comm
from sparknet.comm.handshake import make_secret
from sparknet.comm.mesh import Listener
from sparknet.comm.shared_memory import SWITCH
from sparknet.comm.tcp_comm import TcpComm
from sparknet.native import NDArray, set_threads

FLOATS = 4_000_000
"""16 MB."""

Row = dict[str, float]


def _sockets() -> int:
    found = 0
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found += str(one.readlink()).startswith("socket:")
    return found


def _threads() -> int:
    return sum(1 for _ in Path("/proc/self/task").iterdir())


def _megabytes() -> float:
    """This process's own memory, and its part of what it shares."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _times(comm: Comm, work: Callable[[], object], rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        comm.barrier()
        begun = time.perf_counter()
        work()
        comm.barrier()
        found.append(time.perf_counter() - begun)
    return found


def worker(
    rank: int, size: int, floats: int, rounds: int, serves: bool, secret: bytes, main: Connection
) -> None:
    """Connect to the others, and send what was measured to ``main``."""
    set_threads(1)
    before = _sockets()
    listener = Listener()
    main.send(listener.address)
    addresses = main.recv()
    begun = time.perf_counter()
    with TcpComm.connect(listener, rank, addresses, secret) as comm:
        comm.barrier()
        row = {"rendezvous": time.perf_counter() - begun}
        row |= {"sockets": _sockets() - before, "threads": _threads()}
        buffer = NDArray.full((floats,), float(rank))
        comm.mean(buffer)
        assert float(buffer[0]) == float(buffer[floats - 1]) == (size - 1) / 2
        barriers = _times(comm, comm.barrier, 5 * rounds)
        means = _times(comm, lambda: comm.mean(buffer), rounds)
        sent = _times(comm, lambda: comm.broadcast(buffer, size - 1), rounds)
        row |= {"barrier": statistics.median(barriers), "mean": statistics.median(means)}
        row |= {"broadcast": statistics.median(sent), "MB": _megabytes()}
        if serves:
            server = comm.server(buffer, lambda staleness: 1.0)
            versions = [0] * size
            pushes = _times(comm, lambda: server.push(buffer, versions), 1)
            pulls = _times(comm, lambda: server.pull(buffer), 1)
            row |= {"push": pushes[0], "pull": pulls[0]}
            row |= {"sockets, served": _sockets() - before}
            row |= {"threads, served": _threads()}
            comm.barrier()
            server.close()
        main.send(row)
        comm.barrier()


def measured(size: int, floats: int, rounds: int, serves: bool) -> list[Row]:
    """What each worker measured."""
    context, secret = get_context("fork"), make_secret()
    ends, processes = [], []
    for rank in range(size):
        end, theirs = context.Pipe()
        arguments = (rank, size, floats, rounds, serves, secret, theirs)
        processes.append(context.Process(target=worker, args=arguments))
        processes[-1].start()
        ends.append(end)
    addresses = [end.recv() for end in ends]
    for end in ends:
        end.send(addresses)
    found: list[Row] = [end.recv() for end in ends]
    for process in processes:
        process.join()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("workers", nargs="*", type=int, default=[64])
    parser.add_argument("--floats", type=int, default=FLOATS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--over-tcp", action="store_true", help="use no shared memory")
    parser.add_argument("--serve", action="store_true", help="measure a push and a pull as well")
    options = parser.parse_args()
    if options.over_tcp:
        os.environ[SWITCH] = "0"
    for number, size in enumerate(options.workers):
        rows = measured(size, options.floats, options.rounds, options.serve)
        most = {name: max(row[name] for row in rows) for name in rows[0]}
        if not number:
            print(
                f"\na buffer of {4e-6 * options.floats:.1f} MB; seconds, and the most of a worker"
            )
            print(f"| workers | {' | '.join(most)} |")
            print("|---" * (1 + len(most)) + "|")
        print(f"| {size} | {' | '.join(f'{one:.4g}' for one in most.values())} |", flush=True)


if __name__ == "__main__":
    main()
