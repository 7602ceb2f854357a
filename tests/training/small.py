"""Small learners over real solvers, and groups of them that work in threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from sparknet import caffe
from sparknet.comm.local_comm import LocalComm
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords
from sparknet.net.learner import SolverLearner
from sparknet.proto import caffe_pb2, parse_net, parse_text
from sparknet.training.workers.local import ProcessHost

RECORDS = 96
BATCH = 4

NET = """
name: "small"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: BATCH dim: 3 } } }
layer { name: "t" type: "Input" top: "t" input_param { shape { dim: BATCH dim: 2 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "x" top: "h"
  inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
MIDDLE
layer { name: "act" type: "TanH" bottom: "h" top: "h" }
layer { name: "ip2" type: "InnerProduct" bottom: "h" top: "y"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
"""
BATCH_NORM = 'layer { name: "bn" type: "BatchNorm" bottom: "h" top: "h" }'
DROPOUT = 'layer { name: "drop" type: "Dropout" bottom: "h" top: "h" }'


def net_text(batch: int = BATCH, middle: str = "") -> str:
    return NET.replace("BATCH", str(batch)).replace("MIDDLE", middle)


def settings(text="", batch=BATCH, middle=""):
    """A SolverParameter with sensible numbers, and ``text`` on top."""
    base = 'type: "SGD" base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 random_seed: 7'
    solver = parse_text(base, caffe_pb2.SolverParameter)
    solver.MergeFrom(parse_text(text, caffe_pb2.SolverParameter))
    solver.net_param.CopyFrom(parse_net(net_text(batch, middle)))
    return solver


def records(count: int = RECORDS) -> ArrayRecords:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((count, 3)).astype(np.float32)
    return ArrayRecords(x=x, t=np.tanh(x[:, :2] * 2).astype(np.float32))


class ArrayFeed:
    """Batches of records into the net's inputs of the same names."""

    def __init__(self, net, batches):
        self.net, self.batches = net, batches

    def load(self) -> int:
        batch = self.batches.next()
        for name, values in batch.items():
            self.net.blobs[name].data[...] = values
        return len(values)

    @property
    def cursor(self) -> dict[str, int]:
        return self.batches.cursor

    def seek(self, cursor):
        self.batches.seek(cursor)


def learner(
    rank: int = 0, size: int = 1, text: str = "", batch: int = BATCH, middle: str = ""
) -> SolverLearner:
    solver = caffe.get_solver(settings(text, batch, middle))
    order = Order(RECORDS, seed=3, rank=rank, size=size)
    return SolverLearner(solver, ArrayFeed(solver.net, Batches(records(), batch, order)))


def together(size, work, comms=None):
    """What each rank's work gives, each in its own thread; the first error is raised."""
    group = LocalComm.group(size) if comms is None else comms
    results = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(rank, group[rank])
        except BaseException as error:
            errors.append(error)
            group[rank].close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


@contextmanager
def on_start(act: Callable[[ProcessHost], None]) -> Iterator[None]:
    """Call ``act`` with each worker process that is started within."""
    start = ProcessHost.start

    def started(host: ProcessHost) -> None:
        start(host)
        act(host)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProcessHost, "start", started)
        yield


def weights(one):
    return np.array(one.weights)
