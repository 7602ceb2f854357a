"""VirtualLearner: one of many learners that share an engine, whose weights are swapped in."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparknet.loaders.batches import BatchMaker
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.training.learner import Cursor, OnGradient, SolverLearner, Steps, repeat
from sparknet.training.virtual.comm import VirtualComm
from sparknet.weights import Span


class Dealer:
    """The engine's feed: the batches of that worker which trains now."""

    def __init__(self, net: Net, columns: Collection[str]) -> None:
        self._put = net.feed(columns)
        self.maker: BatchMaker

    def load(self) -> int:
        return self._put(self.maker.make()[0], 0)

    @property
    def cursor(self) -> Cursor:
        return self.maker.order.cursor

    def seek(self, cursor: Mapping[str, int]) -> None:
        self.maker.order.seek(cursor)


class Engine:
    """One net and solver, which compute for all workers in turn."""

    def __init__(self, net: Net, columns: Collection[str]) -> None:
        self.dealer = Dealer(net, columns)
        self.learner = SolverLearner(net.solver, self.dealer)
        self.random = net.net.random_state

    @property
    def buffers(self) -> list[NDArray]:
        """The weights and histories."""
        return [self.learner.weights, *self.learner.histories]


class VirtualLearner:
    """A `Learner` whose buffers are copied into an engine while that computes for it.

    The engine's times do not count: a step takes what the comm's cluster says.
    """

    def __init__(
        self, engine: Engine, comm: VirtualComm, maker: BatchMaker, weights: NDArray
    ) -> None:
        self._engine, self._comm, self._maker = engine, comm, maker
        self.weights = weights.copy()
        self.histories = [NDArray.zeros(one.shape) for one in engine.learner.histories]
        self.statistics: Sequence[Span] = engine.learner.statistics
        self._gradients: NDArray | None = None
        self.on_gradient: OnGradient | None = None
        seed, draws = engine.random
        self._random = (seed + comm.rank, list(draws))
        self._position, self.last_rate = (0, 0), 0.0
        self.clipped = 0
        self.last_rate = self.rate

    @property
    def gradients(self) -> NDArray:
        """A buffer that exists from its first use on, as most strategies need none."""
        if self._gradients is None:
            self._gradients = NDArray.zeros(self.weights.shape)
        return self._gradients

    @property
    def momentum(self) -> float:
        return self._engine.learner.momentum

    @property
    def iter(self) -> int:
        return self._position[0]

    @property
    def rate(self) -> float:
        self._engine.learner.solver.seek(*self._position)
        return self._engine.learner.rate

    def step(self, count: int) -> Steps:
        self._enter()
        before = self._engine.learner.clipped
        done = repeat(lambda: self._timed(self._engine.learner.step(1)), count)
        self.clipped += self._engine.learner.clipped - before
        self._leave()
        self._comm.spend(done.seconds)
        return done

    def compute_gradient(self) -> Steps:
        self._enter()
        done = self._timed(self._engine.learner.compute_gradient())
        self.gradients.copy_from(self._engine.learner.gradients)
        self._leave()
        self._comm.spend(done.seconds)
        return done

    def _timed(self, step: Steps) -> Steps:
        return replace(step, seconds=self._comm.pace.step(step.seconds), loading=0.0)

    def apply_update(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        inner, known = self._engine.learner, 0.0
        if inner.solver.param.clip_gradients >= 0:
            known = norm()  # lets other workers have the engine
        self._settle_state()
        mine = [self.gradients, self.weights, *self.histories]
        theirs = [inner.gradients, *self._engine.buffers]
        for one, other in zip(mine, theirs, strict=True):
            other[begin:end].copy_from(one[begin:end])
        before = inner.clipped
        inner.apply_update(begin, end, lambda: known)
        self.clipped += inner.clipped - before
        for one, other in zip(mine, theirs, strict=True):
            one[begin:end].copy_from(other[begin:end])
        self._take_state()

    def settle(self) -> None:
        """Let the engine have the weights."""
        self._engine.learner.weights.copy_from(self.weights)

    def seek(self, iteration: int) -> None:
        self._engine.learner.seek(iteration)
        self._position = self._engine.learner.solver.position

    def state(self) -> dict[str, Any]:
        self._settle_state()
        return self._engine.learner.state()

    def restore(self, state: Mapping[str, Any]) -> str:
        self._engine.dealer.maker = self._maker
        lost = self._engine.learner.restore(state)
        self._take_state()
        return lost

    # -- the engine ----------------------------------------------------------------------

    def _enter(self) -> None:
        self._settle_state()
        for mine, other in zip([self.weights, *self.histories], self._engine.buffers, strict=True):
            other.copy_from(mine)
        self._engine.learner.on_gradient, self.on_gradient = self.on_gradient, None

    def _leave(self) -> None:
        for mine, other in zip([self.weights, *self.histories], self._engine.buffers, strict=True):
            mine.copy_from(other)
        self._take_state()

    def _settle_state(self) -> None:
        inner = self._engine.learner
        self._engine.dealer.maker = self._maker
        inner.solver.seek(*self._position)
        inner.last_rate = self.last_rate
        inner.solver.net.random_state = self._random

    def _take_state(self) -> None:
        inner = self._engine.learner
        self._position, self.last_rate = inner.solver.position, inner.last_rate
        self._random = inner.solver.net.random_state
