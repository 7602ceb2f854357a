"""Compares what `sparknet.plan` predicts with what training takes.

    python -m benchmarks.planning [--master local-cluster[4,1,2048]] [--seconds 8]
        the time of a round, measured and predicted, for three nets, two τ, 2 and 4 workers
    python -m benchmarks.planning --advice
        the time to an accuracy with the advised strategy and with τ = 1, 10 and 50, in processes
        between which every message is delayed as on a slow network

The workers are processes of this machine, or with --master executors of a Spark cluster.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection
from statistics import mean, median
from typing import Any

from benchmarks.comm import spread
from benchmarks.digits import TRAINED, records
from benchmarks.papers.dynamic import solver
from sparknet import models, native
from sparknet.comm.codecs import Codec
from sparknet.comm.handshake import make_secret
from sparknet.comm.mesh import Listener
from sparknet.comm.tcp_comm import TcpComm
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.learner import NetFeed, SolverLearner
from sparknet.training import Averaging, Cluster, Strategy, train, work
from sparknet.training.planning import Measured, plan, predict
from sparknet.training.planning.advice import short
from sparknet.training.planning.measurement import Runner, measure
from sparknet.training.planning.subject import NetSubject, made_up, with_batch
from sparknet.training.schedule import Hooks, RunPlan

NETS = {"lenet": 64, "cifar10_quick": 32, "cifar10_full": 32}
LENGTHS = (5, 20)
WORKERS = (2, 4)
NETWORK = Cluster(bandwidth=20e6, latency=2e-3)
"""The slow network of --advice: 160 Mbit/s."""
ACCURACY = 0.96
MOST = 3000

Events = Sequence[dict[str, Any]]


# -- rounds ----------------------------------------------------------------------------------


def here(data: Any) -> Runner:
    def run(solver: Any, workers: int, strategy: Strategy, seconds: float) -> Events:
        made = train(
            solver, data, workers=workers, strategy=strategy, seconds=seconds, diverged=1e30
        )
        return made.history

    return run


def on_spark(session: Any, data: Any) -> Runner:
    from sparknet.spark import read_records, runner

    return runner(read_records(session, data))


def round_seconds(events: Events) -> float:
    """The mean time from one round's end to the next, after two rounds."""
    ends = [event["total_seconds"] for event in events if event["event"] == "round"][1:]
    return float(ends[-1] - ends[0]) / (len(ends) - 1)


def compare(name: str, batch: int, workers: int, run: Runner, seconds: float, turns: int) -> None:
    """Print lines of a table: measure C and S as `plan` does, predict a round, and train.

    Both take turns, because what else the machine does changes in minutes; medians are compared.
    """
    net = Net(models.solver(name), seed=1)
    chosen, nbytes = with_batch(net, batch), net.get_weights().flat.nbytes
    for steps in LENGTHS:
        found, foreseen, took = [], [], []
        for _ in range(turns):
            rough = NetSubject(net).rough_pass()
            found.append(measure(run, partial(with_batch, net), workers, batch, rough, seconds))
            cluster, between = found[-1].cluster(nbytes), found[-1].between
            each = predict(Averaging(steps), cluster, workers, nbytes, between)
            foreseen.append(1e3 * steps * each.seconds)
            took.append(1e3 * round_seconds(run(chosen, workers, Averaging(steps), seconds)))
        step, sync = (1e3 * median(values) for values in zip(*map(_costs, found), strict=True))
        error = median(foreseen) / median(took) - 1
        cells = (f"{step:.2f} ms", f"{sync:.2f} ms", spread(foreseen, 0), spread(took, 0))
        print(f"| {name} | {workers} | {steps} | {' | '.join(cells)} | {error:+.0%} |", flush=True)


def _costs(found: Measured) -> tuple[float, float]:
    return found.step, found.sync


def rounds(master: str | None, nets: Sequence[str], seconds: float, turns: int) -> None:
    print("| net | workers | τ | C | S | ms of a round, predicted | measured | error |")
    print("|---|---|---|---|---|---|---|---|")
    session: Any = None
    if master is not None:
        from sparknet.spark import get_session

        session = get_session(max(WORKERS), master=master, threads=1, name="planning")
    for name in nets:
        batch = NETS[name]
        data = made_up(Net(models.solver(name), seed=1), 2048)
        run = here(data) if session is None else on_spark(session, data)
        for workers in WORKERS:
            compare(name, batch, workers, run, seconds, turns)


# -- the advice ------------------------------------------------------------------------------


class SlowComm(TcpComm):
    """Real connections, on which messages take the time of `NETWORK` besides their own."""

    def mean(
        self, buffer: NDArray, weight: float = 1.0, codec: Codec | None = None, part: int = 0
    ) -> None:
        super().mean(buffer, weight, codec, part)
        self._delay(buffer, 2)

    def reduce_scatter_mean(self, buffer: NDArray, codec: Codec | None = None) -> None:
        super().reduce_scatter_mean(buffer, codec)
        self._delay(buffer, 1)

    def all_gather(self, buffer: NDArray, codec: Codec | None = None) -> None:
        super().all_gather(buffer, codec)
        self._delay(buffer, 1)

    def gather(self, value: Any) -> list[Any]:
        found = super().gather(value)
        time.sleep(NETWORK.message(0, self.size))
        return found

    def _delay(self, buffer: NDArray, messages: int) -> None:
        part = buffer.nbytes * (self.size - 1) / self.size
        time.sleep(messages * NETWORK.message(part, self.size))


def worker(
    rank: int, size: int, strategy: Strategy, secret: bytes, seed: int, main: Connection
) -> None:
    """Train until `ACCURACY`; worker 0 sends the seconds without validations."""
    native.set_threads(1)
    listener = Listener()
    main.send(listener.address)
    with SlowComm.connect(listener, rank, main.recv(), secret) as comm:
        net = Net(solver(), seed=1)
        order = Order(TRAINED, seed, True, rank, size)
        data, held = records(slice(0, TRAINED)), records(slice(TRAINED, None))
        with Batches(data, net.batch_size, order) as batches:
            net.set_training_data(batches, transformed=True)
            net.set_validation_data(held)
            learner = SolverLearner(net.solver, NetFeed(net, batches))
            spent: list[float] = []
            reached: list[bool] = []

            def validate() -> tuple[int, dict[str, float]]:
                begun = time.perf_counter()
                metrics = net.test()
                spent.append(time.perf_counter() - begun)
                reached.append(metrics["accuracy"] >= ACCURACY)
                return len(held), metrics

            every = max(1, 10 // getattr(strategy, "steps", 10))
            hooks = Hooks(validate=validate, interrupted=lambda: any(reached))
            comm.barrier()
            begun = time.perf_counter()
            outcome = work(
                learner, strategy, comm, RunPlan(steps=MOST, validate_every=every), hooks
            )
            if rank == 0:
                took = time.perf_counter() - begun - sum(spent)
                main.send((took, outcome.iteration, any(reached)))


def timed(strategy: Strategy, size: int, seed: int) -> tuple[float, int, bool]:
    """Seconds and iterations until the accuracy, in real processes."""
    context, secret = multiprocessing.get_context("spawn"), make_secret()
    ends, processes = [], []
    for rank in range(size):
        mine, theirs = context.Pipe()
        arguments = (rank, size, strategy, secret, seed, theirs)
        processes.append(context.Process(target=worker, args=arguments))
        processes[-1].start()
        ends.append(mine)
    addresses = [end.recv() for end in ends]
    for end in ends:
        end.send(addresses)
    found: tuple[float, int, bool] = ends[0].recv()
    for process in processes:
        process.join()
    return found


def advice(size: int, seeds: Sequence[int]) -> None:
    made = plan(
        solver(),
        records(slice(0, TRAINED)),
        workers=size,
        cluster=NETWORK,
        validation=records(slice(TRAINED, None)),
        accuracy=ACCURACY,
        seconds=8.0,
        trial=90.0,
    )
    print(made, "\n")
    chosen = dict.fromkeys([made.strategy, Averaging(1), Averaging(10), Averaging(50)])
    print(f"| strategy | iterations | seconds to {ACCURACY:.0%} | to the advised one |")
    print("|---|---|---|---|")
    first = 0.0
    for strategy in chosen:
        found = [timed(strategy, size, seed) for seed in seeds]
        took = mean(seconds for seconds, _, _ in found)
        first = first or took
        iterations = ", ".join(str(count) for _, count, _ in found)
        print(f"| {short(strategy)} | {iterations} | {took:.2f} | {took / first:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--master", help="of a Spark cluster; else processes")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each run")
    parser.add_argument("--nets", nargs="+", choices=list(NETS), default=list(NETS))
    parser.add_argument("--turns", type=int, default=3, help="of measuring and training")
    parser.add_argument("--advice", action="store_true")
    parser.add_argument("--workers", type=int, default=2, help="of --advice")
    parser.add_argument("--seeds", type=int, default=3, help="orders of the data, for --advice")
    asked = parser.parse_args()
    if asked.advice:
        advice(asked.workers, range(asked.seeds))
    else:
        rounds(asked.master, asked.nets, asked.seconds, asked.turns)


if __name__ == "__main__":
    main()
