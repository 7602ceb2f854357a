"""BigDL (Dai et al., 2019): Figures 6 to 8, the costs of synchronising and of scheduling."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import sparknet
from benchmarks.papers import trainings
from benchmarks.papers.cells import CurvePanel, Curves, Item, MarkdownTable, Part, TableCell
from sparknet import models
from sparknet.comm.mesh import Listener
from sparknet.comm.shared_memory import SWITCH
from sparknet.comm.tcp_comm import TcpComm
from sparknet.graph.build import build_in_state
from sparknet.native import NDArray
from sparknet.spark.cluster.gpus import gathered
from sparknet.training import Cluster
from sparknet.training.planning.trials import Spread

TASKS = (2, 4, 8, 16, 32, 64)
NODES = (16, 32, 64, 96, 128, 192, 256)
EXECUTORS = 4
LOOPS, TURNS = 20, 3
STEP = 2.0
"""C in Figures 6 and 7, in seconds: assumed."""
WIRE = Cluster(step=STEP, bandwidth=1.25e9, latency=5e-4, overhead=2e-5, jitter=0.05)
"""10 Gbit/s, as in the paper; latency, the cost of a peer and the spread of steps are assumed."""


@cache
def nbytes() -> int:
    """Of Inception-v1's weights."""
    graph = build_in_state(models.net("googlenet").to_proto())
    return 4 * sum(_count(ref.shape) for node in graph.nodes for ref in node.params if ref.owned)


def _count(shape: Any) -> int:
    total = 1
    for size in shape:
        total *= int(size)
    return total


# -- Figure 8: empty steps on a real cluster -------------------------------------------------


def measured(tasks: int) -> dict[str, list[float]]:
    """Seconds of an empty iteration, in each turn; kept beside the trainings."""
    path = trainings.folder / "scheduling.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(_measure()))
    found: dict[str, list[float]] = json.loads(path.read_text())[str(tasks)]
    return found


def _measure() -> dict[int, dict[str, list[float]]]:
    """A job for each iteration, then one stage whose workers meet in each iteration."""
    from sparknet.spark import local_session

    session = local_session(
        TASKS[-1],
        threads=1,
        config={
            "spark.master": f"local-cluster[{EXECUTORS},{TASKS[-1] // EXECUTORS},1024]",
            "spark.executor.memory": "1g",
            "spark.executorEnv.PYTHONPATH": str(Path(sparknet.__file__).parents[1]),
        },
    )
    try:
        return {
            tasks: {"jobs": _jobs(session, tasks), "stage": _met(session, tasks)} for tasks in TASKS
        }
    finally:
        session.stop()


def _jobs(session: Any, tasks: int) -> list[float]:
    """Empty tasks of the JVM, which start no Python."""
    context = session.sparkContext
    numbers = context._jvm.java.util.ArrayList(list(range(tasks)))
    parts = context._jsc.parallelize(numbers, tasks)
    for _ in range(20):
        parts.count()
    times = []
    for _ in range(TURNS):
        begun = time.perf_counter()
        for _ in range(LOOPS):
            parts.count()
        times.append((time.perf_counter() - begun) / LOOPS)
    return times


def _met(session: Any, tasks: int) -> list[float]:
    rows = session.range(tasks).repartition(tasks)
    body = partial(_stage, secret=secrets.token_bytes(32))
    found = rows.mapInArrow(body, "times string", barrier=True).collect()
    times = [json.loads(row.times) for row in found]
    return [max(turn) for turn in zip(*times, strict=True)]


def _stage(batches: Any, secret: bytes) -> Iterator[Any]:
    """One worker of the stage: iterations without a step, each with a mean of one number."""
    import pyarrow as pa

    for _ in batches:
        pass
    os.environ[SWITCH] = "0"  # over TCP, as on several machines
    listener = Listener()
    rank, told = gathered(json.dumps(listener.address))
    addresses = [tuple(json.loads(text)) for text in told]
    buffer, times = NDArray.zeros((len(addresses),)), []
    with TcpComm.connect(listener, rank, addresses, secret, 120.0) as comm:
        comm.mean(buffer)
        for _ in range(TURNS):
            begun = time.perf_counter()
            for _ in range(LOOPS):
                comm.mean(buffer)
            times.append((time.perf_counter() - begun) / LOOPS)
    yield pa.RecordBatch.from_pydict({"times": [json.dumps(times)]})


def _winner(job: float, stage: float) -> str:
    if stage < job:
        return ""
    return ": here the meeting loses, as all K processes of Python share two cores"


def scheduling() -> Part:
    def cell(tasks: int, way: str) -> TableCell:
        return TableCell(lambda: Spread.of(measured(tasks)[way]), 1e3, 1, is_timed=True)

    def jobs(tasks: int) -> Spread:
        return Spread.of(measured(tasks)["jobs"])

    def ratio(tasks: int) -> Spread:
        found = measured(tasks)
        return Spread.of(
            one / other for one, other in zip(found["jobs"], found["stage"], strict=True)
        )

    rows: list[list[Item]] = [
        [
            str(tasks),
            cell(tasks, "jobs"),
            cell(tasks, "stage"),
            TableCell(partial(ratio, tasks), digits=1, is_timed=True),
            TableCell(partial(jobs, tasks), 100 / STEP, 1, " %", is_timed=True),
        ]
        for tasks in TASKS
    ]

    def text() -> str:
        most = TASKS[-1]
        job, stage = (Spread.of(measured(most)[way]).mean for way in ("jobs", "stage"))
        return (
            "Measured without any step, on a standalone cluster of Spark. Its "
            f"{EXECUTORS} executors are processes of one machine with two cores; ± is over three "
            "turns.\n\nBigDL runs two Spark jobs in each iteration; the table has one job of K "
            "empty tasks of the JVM. sparknet runs one barrier stage for the whole training. Its "
            "workers, K processes of Python, meet in each iteration: they take a mean of one "
            "number for each, over TCP. All K share the two cores, so the absolute times say more "
            f"about this machine than about a cluster.\n\nAt K = {most} a job takes "
            f"{1e3 * job:.0f} ms, a meeting {1e3 * stage:.0f} ms{_winner(job, stage)}. In the "
            "paper's figure, on its own cluster, the share of scheduling in an iteration grows "
            "with the tasks, too. The last column is the share of one job in an iteration of "
            f"{STEP:g} s."
        )

    head = ("K", "a job, ms", "a meeting within the stage, ms", "ratio", "a job / C")
    return Part(
        "bigdl8",
        "BigDL, Figure 8: scheduling an iteration of empty steps",
        text,
        [MarkdownTable(head, rows)],
        measures=trainings.MEETING,
    )


# -- Figures 6 and 7: synchronisation and throughput in virtual time -------------------------


@cache
def iteration(nodes: int) -> float:
    """Seconds of an iteration of all-reduce in virtual time: the slowest step, and S.

    `predict` runs the strategy itself, and gives the same; 256 threads take it minutes.
    """
    sigma = WIRE.jitter
    steps = np.random.default_rng(0).lognormal(-(sigma**2) / 2, sigma, (1000, nodes))
    return STEP * float(steps.max(axis=1).mean()) + WIRE.sync(nbytes(), nodes)


def throughput() -> Part:
    def job(nodes: int) -> float:
        """A job's time, on a line through the two largest that were measured."""
        low, high = (Spread.of(measured(one)["jobs"]).mean for one in TASKS[-2:])
        return high + (nodes - TASKS[-1]) * (high - low) / (TASKS[-1] - TASKS[-2])

    def ours(nodes: int) -> float:
        return nodes / 16 * iteration(16) / iteration(nodes)

    def scheduled(nodes: int) -> float:
        return nodes / 16 * (iteration(16) + job(16)) / (iteration(nodes) + job(nodes))

    def share(nodes: int) -> float:
        return WIRE.sync(nbytes(), nodes) / STEP

    def single(number: Callable[[int], float], nodes: int) -> Spread:
        return Spread.of([number(nodes)])

    paper = {96: "5.3"}

    rows: list[list[Item]] = [
        [
            str(nodes),
            f"{nodes / 16:g}",
            paper.get(nodes, ""),
            TableCell(partial(single, ours, nodes)),
            TableCell(partial(single, scheduled, nodes), is_timed=True),
            TableCell(partial(single, share, nodes), 100, 1, " %"),
        ]
        for nodes in NODES
    ]

    def curves() -> Curves:
        return {
            "ideal": [(float(one), one / 16) for one in NODES],
            "one stage": [(float(one), ours(one)) for one in NODES],
            "a job for each iteration": [(float(one), scheduled(one)) for one in NODES],
        }

    def text() -> str:
        return (
            "All in virtual time:\n\n"
            f"- all-reduce of the {nbytes() / 1e6:.1f} MB of Inception-v1, with both auxiliary "
            "heads, in each iteration;\n"
            f"- C = {STEP:g} s and a spread of 5% in the times of steps (assumed);\n"
            "- 10 Gbit/s, as in the paper.\n\n"
            "The speed-up is against 16 nodes, as in the paper. The paper reports nearly linear "
            "scaling up to 96 nodes (5.3). Up to 256 it calls the scaling reasonable, without a "
            "number. The column of jobs adds the time of a Spark job for each iteration, from a "
            "line through those of Figure 8. One machine measured these, and a cluster would take "
            "less. The last column is Figure 6, S / C; the paper has less than 7% on 32 nodes.\n\n"
            f"At 256 nodes one stage reaches {ours(256):.1f} of 16. The rest is the waiting for "
            "the slowest of 256 workers and the messages to each."
        )

    head = (
        *("nodes", "ideal", "the paper's", "one stage, virtual"),
        *("a job for each iteration, virtual", "S / C"),
    )
    return Part(
        "bigdl67",
        "BigDL, Figures 6 and 7: synchronisation, and throughput up to 256 nodes",
        text,
        [MarkdownTable(head, rows)],
        [CurvePanel("Speed-up over 16 nodes", "nodes", curves)],
        measures=trainings.MEETING,
    )
