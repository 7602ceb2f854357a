"""Predicting: what each strategy's rounds take on a cluster, by running the strategy itself.

A `Pacer` stands for a worker: its steps take the cluster's time and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparknet.native import NDArray
from sparknet.native.codes import SCALED
from sparknet.net.learner import OnGradient, Steps
from sparknet.training.schedule import ENDLESS
from sparknet.training.strategies import Strategy
from sparknet.training.virtual.cluster import Cluster, Pace
from sparknet.training.virtual.comm import Stage, VirtualComm, perform
from sparknet.weights import Span

_STEPS, _ROUNDS = 200, 4
"""How much of a strategy is looked at: so many steps, and no fewer rounds."""


@dataclass(frozen=True)
class Predicted:
    """What one iteration of all workers takes on average."""

    seconds: float
    share: float
    """The share of communication, waiting included."""
    bytes: float
    """What each worker sends."""


def stand_in(workers: int, strategy: Strategy) -> int:
    """Return the floats that stand for a net's weights: few, but whole blocks of a codec.

    Each worker has a slice of each part that is synchronised by itself.
    """
    each = SCALED if getattr(strategy, "codec", None) else 64
    return workers * strategy.parts * each


class Pacer:
    """A `Learner` that only lets time pass."""

    statistics: Sequence[Span] = ()
    momentum, rate, last_rate, clipped = 0.9, 0.01, 0.01, 0
    on_gradient: OnGradient | None = None

    def __init__(self, comm: VirtualComm, size: int) -> None:
        self._comm, self.iter = comm, 0
        self.weights, self.gradients = NDArray.zeros((size,)), NDArray.zeros((size,))
        self.histories = [NDArray.zeros((size,))]

    def step(self, count: int) -> Steps:
        seconds = sum(self._comm.pace.step(0.0) for _ in range(count))
        self._comm.spend(seconds)
        self.iter += count
        return Steps(count, count, 0.0, seconds)

    def compute_gradient(self) -> Steps:
        done = self.step(1)
        self.iter -= 1
        return done

    def apply_update(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        self.iter += 1

    def settle(self) -> None:
        """Do nothing: there is no net."""

    def seek(self, iteration: int) -> None:
        self.iter = iteration

    def state(self) -> dict[str, Any]:
        return {"iteration": self.iter}

    def restore(self, state: Mapping[str, Any]) -> str:
        self.iter = state["iteration"]
        return ""


def predict(
    strategy: Strategy, cluster: Cluster, workers: int, nbytes: int, between: float = 0.0
) -> Predicted:
    """Return what an iteration takes after the first round, for weights of ``nbytes``.

    ``between`` are seconds that pass between two rounds.
    """
    size = stand_in(workers, strategy)
    stage, price = Stage(workers), nbytes / (4 * size)

    def run(rank: int) -> tuple[float, float, float]:
        comm = VirtualComm(rank, stage, cluster, Pace(cluster, rank), price)
        return _looked_at(strategy, Pacer(comm, size), comm, between)

    times = perform(stage, run)
    for one in times:
        if isinstance(one, BaseException):
            raise one
    seconds, talking, nbytes_sent = (sum(values) / workers for values in zip(*times, strict=True))
    return Predicted(seconds, talking / seconds if seconds else 0.0, nbytes_sent)


def _looked_at(
    strategy: Strategy, pacer: Pacer, comm: VirtualComm, between: float
) -> tuple[float, float, float]:
    """Return seconds, seconds in communication and bytes sent, each for one iteration."""
    state = strategy.start(pacer, comm)
    strategy.round(pacer, comm, state, ENDLESS)
    first, start = pacer.iter, comm.clock()
    talking, nbytes = comm.traffic.seconds, comm.traffic.sent
    rounds = 0
    while rounds < _ROUNDS or pacer.iter - first < _STEPS:
        strategy.round(pacer, comm, state, ENDLESS)
        comm.gather(None)  # the report of the round
        comm.spend(between)
        rounds += 1
    steps = pacer.iter - first
    traffic = comm.traffic
    return (
        (comm.clock() - start) / steps,
        (traffic.seconds - talking) / steps,
        (traffic.sent - nbytes) / steps,
    )
