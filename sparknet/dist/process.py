"""A worker process of this machine: python -m sparknet.dist.process FILE_NUMBER

The number is that of a socket to the process that started it (`sparknet.dist.crew`).  If that
process goes, so does this one.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

from sparknet.dist.channel import Channel
from sparknet.dist.comm import Comm
from sparknet.dist.failure import failure
from sparknet.dist.job import Job, open_shared
from sparknet.dist.learner import NetFeed, SolverLearner
from sparknet.dist.mesh import Address, Listener
from sparknet.dist.plan import Hooks, Validate
from sparknet.dist.seal import choose_seal
from sparknet.dist.store import FolderStore
from sparknet.dist.tcp import TcpComm
from sparknet.dist.worker import Outcome, work
from sparknet.errors import SparkNetError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.source import Records, Subset
from sparknet.native import NDArray, set_threads
from sparknet.net import Net
from sparknet.weights import layout_of


class Boss:
    """The process that started this one: it says when to stop."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        message = channel.wait()
        if message is None:
            os._exit(1)
        self.job = Job(**message["job"])
        self.rank, self.size = int(message["rank"]), int(message["size"])
        self.secret = bytes.fromhex(message["secret"])
        self.stopping = threading.Event()

    def tell(self, **message: Any) -> None:
        self._channel.send(message)

    def exchange_addresses(self, mine: Address) -> list[Address]:
        """Everybody's, by rank."""
        self.tell(address=mine)
        while "addresses" not in (message := self._next()):
            pass
        threading.Thread(target=self._listen, daemon=True).start()
        return [(host, port) for host, port in message["addresses"]]

    def _listen(self) -> None:
        while True:
            self._next()

    def _next(self) -> dict[str, Any]:
        """A message; that to stop may come at any time."""
        message = self._channel.wait()
        if message is None:
            self._leave()
        if "stop" in message:
            self.stopping.set()
        return message

    def _leave(self) -> NoReturn:
        """Nobody waits for this process any more."""
        shutil.rmtree(self.job.folder, ignore_errors=True)
        os._exit(1)


def main(number: int) -> int:
    boss = Boss(Channel.inherited(number))
    try:
        boss.tell(done=vars(run(boss)))
    except SparkNetError as error:
        boss.tell(error=failure(error))
        return 1
    except Exception as error:
        boss.tell(error={**failure(error), "trace": traceback.format_exc()})
        return 1
    return 0


def run(boss: Boss) -> Outcome:
    """Build, connect, train; worker 0 leaves the weights."""
    job = boss.job
    set_threads(job.threads)
    listener = Listener()
    records = open_shared(job.records)
    net = build(job, records, boss.rank)
    learner = feed(net, job, records, boss.rank, boss.size)
    addresses = boss.exchange_addresses(listener.address)
    seal = choose_seal("sealed")
    with TcpComm.connect(
        listener, boss.rank, addresses, boss.secret, job.deadline, seal=seal
    ) as comm:
        outcome = work(learner, job.make_strategy(), comm, job.make_plan(), hooks(boss, net, comm))
    if boss.rank == 0:
        NDArray.map(job.trained, learner.weights.shape, mode="w+").copy_from(learner.weights)
    return outcome


def build(job: Job, records: Records, rank: int) -> Net:
    """The net of the job, with its weights; random numbers differ from worker to worker."""
    net = Net(job.solver, seed=job.seed, precision=job.precision)
    net.set_training_data(records)  # which may tell the shape of the net
    seed, draws = net.net.random_state
    net.net.random_state = (seed + rank, draws)
    weights = net.net.flat_params
    weights.copy_from(job.open_weights(weights.size))
    return net


def feed(net: Net, job: Job, records: Records, rank: int, size: int) -> SolverLearner:
    """This worker's share of the records, in its own thread's batches."""
    order = Order(len(records), job.order_seed, job.shuffle, rank, size)
    batches = Batches(records, net.batch_size, order, transforms=net.transforms)
    net.set_training_data(batches, transformed=True)
    return SolverLearner(net.solver, NetFeed(net, batches))


def hooks(boss: Boss, net: Net, comm: Comm) -> Hooks:
    job = boss.job

    def say(event: Mapping[str, Any]) -> None:
        boss.tell(event=event)

    validate = None
    if job.validation is not None:
        validate = validation(net, open_shared(job.validation), comm)
    store = None if job.snapshots is None else FolderStore(job.snapshots)
    return Hooks(
        say,
        validate,
        boss.stopping.is_set,
        store,
        job.resume,
        job.identity,
        layout=layout_of(net.net),
    )


def validation(net: Net, records: Records, comm: Comm) -> Validate:
    """This worker's part of the records, one behind the other."""
    count = len(records)
    begin, end = count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size
    if begin < end:
        net.set_validation_data(Subset(records, slice(begin, end)))

    def measure() -> tuple[int, dict[str, float]]:
        return (end - begin, net.test()) if begin < end else (0, {})

    return measure


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
