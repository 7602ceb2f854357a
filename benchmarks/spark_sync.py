"""Measures a synchronisation of 244 MB of weights on Spark, on separate executors.

    python -m benchmarks.spark_sync [--workers 2 4] [--rounds 10] [--loops 2] [--protection none]

One barrier stage measures in turn: the mean by TcpComm, its two halves alone, the wait of a
barrier, and a plain copy of the same bytes over loopback between the same processes.  Then follows
the loop of examples/rdd_averaging.py without the training: broadcast, mapPartitions, tree_mean.
"""

from __future__ import annotations

import argparse
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from sparknet.comm.mesh import TOGETHER, Listener
from sparknet.comm.tcp_comm import TcpComm
from sparknet.comm.wire import choose_seal
from sparknet.native import NDArray
from sparknet.spark import local_session, tree_mean
from sparknet.weights import LayerBlobs, Layout, WeightCollection

NUMBERS = 61_000_000
"""The number of CaffeNet's parameters."""
LAYOUT = Layout((LayerBlobs("all", ((NUMBERS,),), (0,)),))


def copy(sockets: Sequence[socket.socket], given: memoryview, taken: memoryview) -> None:
    """Send and receive as many bytes as a mean moves: a slice to and from each, twice."""
    share = given.nbytes // (len(sockets) + 1)

    def send(one: socket.socket) -> None:
        for _ in range(2):
            one.sendall(given[:share])

    senders = [threading.Thread(target=send, args=(one,)) for one in sockets]
    for sender in senders:
        sender.start()
    for _ in range(2):
        for one in sockets:
            got = 0
            while got < share:
                got += one.recv_into(
                    taken[got:share], min(share - got, 1 << 21), socket.MSG_WAITALL
                )
    for sender in senders:
        sender.join()


def measure(batches: Any, rounds: int, secret: bytes, seal: str) -> Iterator[Any]:
    """Measure each operation in turn, in a task; yields the times."""
    import pyarrow as pa
    from pyspark import BarrierTaskContext

    for _ in batches:
        pass
    context = BarrierTaskContext.get()
    rank = context.partitionId()
    listeners = [Listener(), Listener()]
    gathered = context.allGather(json.dumps([one.address for one in listeners]))
    addresses = [[tuple(address) for address in json.loads(text)] for text in gathered]
    meshes = [
        listener.connect(rank, [mine[number] for mine in addresses], secret, 60.0, seal=seal)
        for number, listener in enumerate(listeners)
    ]
    plain = [one[TOGETHER].connection for one in meshes[1] if one]
    buffer, spare = NDArray.full((NUMBERS,), 1.0 + rank), NDArray.full((NUMBERS,), 0.0)
    given, taken = (np.asarray(one).data.cast("B") for one in (buffer, spare))
    with TcpComm(rank, [mine[0] for mine in addresses], meshes[0], 60.0) as comm:
        things: dict[str, Callable[[], None]] = {
            "mean": lambda: comm.mean(buffer),
            "reduce-scatter": lambda: comm.reduce_scatter_mean(buffer),
            "all-gather": lambda: comm.all_gather(buffer),
            "barrier": comm.barrier,
            "plain copy": lambda: copy(plain, given, taken),
        }
        times: dict[str, list[float]] = {name: [] for name in things}
        for _ in range(rounds + 1):
            for name, thing in things.items():
                comm.barrier()
                begun = time.perf_counter()
                thing()
                comm.barrier()
                times[name].append(time.perf_counter() - begun)
    for connections in meshes[1]:
        for connection in connections:
            connection.close()
    found = {name: values[1:] for name, values in times.items()}
    yield pa.RecordBatch.from_pydict({"times": [json.dumps(found)]})


def loop(session: Any, workers: int, loops: int) -> list[float]:
    """Seconds of rounds of broadcast, a map over partitions that returns weights, and a mean."""
    context = session.sparkContext
    parts = context.parallelize(range(workers), workers)
    weights = WeightCollection(LAYOUT)
    times = []
    for _ in range(loops + 1):
        begun = time.perf_counter()
        sent = context.broadcast(weights)
        weights = tree_mean(parts.map(partial(_trained, sent)), fan_in=workers)
        sent.destroy()
        times.append(time.perf_counter() - begun)
    return times[1:]


def _trained(sent: Any, _: int) -> WeightCollection:
    weights: WeightCollection = sent.value
    return weights


def run(workers: int, rounds: int, loops: int, seal: str) -> None:
    session = local_session(
        workers,
        threads=1,
        memory="6g",
        config={
            "spark.master": f"local-cluster[{workers},1,3072]",
            "spark.executor.memory": "3g",
            "spark.driver.maxResultSize": "0",
        },
    )
    rows = session.range(workers).repartition(workers)
    body = partial(measure, rounds=rounds, secret=secrets.token_bytes(32), seal=seal)
    found = [
        json.loads(row.times)
        for row in rows.mapInArrow(body, "times string", barrier=True).collect()
    ]
    slow = loop(session, workers, loops)
    session.stop()
    report(workers, found, slow, seal)


def report(workers: int, found: list[dict[str, list[float]]], slow: list[float], seal: str) -> None:
    """Print the times; each round counts with its slowest worker."""
    times = {
        name: [max(rounds) for rounds in zip(*(one[name] for one in found), strict=True)]
        for name in found[0]
    }
    times["broadcast and tree_mean"] = slow
    print(f"\nK = {workers}, {4 * NUMBERS / 1e6:.0f} MB, executors apart, seal: {seal}")
    for name, values in times.items():
        print(f"  {name:26}{_range(values)} s")
    pairs = zip(times["mean"], times["plain copy"], strict=True)
    print(f"  mean / plain copy         {_range([one / other for one, other in pairs])}")
    print(f"  loop / mean               {median(slow) / median(times['mean']):8.1f}")


def _range(values: Sequence[float]) -> str:
    return f"{median(values):8.3f}  ({min(values):.3f} … {max(values):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument(
        "--protection",
        choices=["sealed", "encrypted", "none"],
        default="sealed",
        help="of the mean",
    )
    chosen = parser.parse_args()
    for workers in chosen.workers:
        run(workers, chosen.rounds, chosen.loops, choose_seal(chosen.protection))


if __name__ == "__main__":
    main()
