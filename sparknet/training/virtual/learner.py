"""Learners of virtual workers, which share the engine of a net or have a module each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from sparknet.loaders.batches import Batches, BatchMaker, BatchWork
from sparknet.loaders.order import Order
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.learner import Cursor, Learner, OnGradient, SolverLearner, Steps, repeat
from sparknet.net.portable import portable_solver
from sparknet.proto import parse_solver
from sparknet.torch.modules.flat_module import PortableModule
from sparknet.torch.modules.torch_model import TorchModel
from sparknet.training.driver.setup import NetSetup, RunSetup
from sparknet.training.schedule import Validate
from sparknet.training.training_net import settings
from sparknet.training.virtual.comm import VirtualComm
from sparknet.training.workers.records import WorkerRecords, validation
from sparknet.weights import Layout, Span, layout_of


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
        inner, length = self._engine.learner, 0.0
        if inner.solver.param.clip_gradients >= 0:
            length = norm()  # lets other workers have the engine
        self._settle_state()
        mine = [self.gradients, self.weights, *self.histories]
        theirs = [inner.gradients, *self._engine.buffers]
        for one, other in zip(mine, theirs, strict=True):
            other[begin:end].copy_from(one[begin:end])
        before = inner.clipped
        inner.apply_update(begin, end, lambda: length)
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
        losses = self._engine.learner.restore(state)
        self._take_state()
        return losses

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


class Cast(Protocol):
    """What computes for the workers."""

    @property
    def layout(self) -> Layout: ...

    def learner(self, comm: VirtualComm, order: Order, initial: NDArray) -> Learner:
        """That of a worker, whose times are the cluster's."""
        ...

    def validation(self, comm: VirtualComm, metrics: Sequence[str]) -> Validate: ...


class NetCast:
    """A net's engine, which computes for all workers in turn."""

    def __init__(
        self, net: Net, records: Records, held_out: Records | None, folder: Path, seed: int
    ) -> None:
        self._net, self._records, self._held_out = _engine_net(net, folder, seed), records, held_out
        self._net.set_training_data(records)
        if held_out is not None:
            self._net.set_validation_data(held_out)
        self._transforms = self._net.staged_transforms
        self._engine = Engine(self._net, records.columns)

    @property
    def layout(self) -> Layout:
        return layout_of(self._net.net)

    def learner(self, comm: VirtualComm, order: Order, initial: NDArray) -> Learner:
        batch = self._net.batch_size
        work = BatchWork(self._records, batch, order, False, self._transforms, order.cursor)
        return VirtualLearner(self._engine, comm, BatchMaker(work), initial)

    def validation(self, comm: VirtualComm, metrics: Sequence[str]) -> Validate:
        def validate() -> tuple[int, dict[str, float]]:
            assert self._held_out is not None
            first = comm.rank == 0
            return (len(self._held_out), self._net.measure(metrics)[1]) if first else (0, {})

        return validate


def _engine_net(net: Net, folder: Path, seed: int) -> Net:
    """Return the net of a worker, made as `worker` makes it."""
    solver = parse_solver(portable_solver(settings(net)).unpacked(folder))
    solver.snapshot_prefix = str(folder / "solver")
    return Net(
        solver,
        seed=seed,
        precision=net.precision,
        device=net.device,
        preprocessing=net.preprocessing,
    )


class ModuleCast:
    """A module for each worker, made as workers make it."""

    def __init__(
        self,
        sent: PortableModule,
        layout: Layout,
        records: Records,
        held_out: Records | None,
        seed: int,
    ) -> None:
        self._sent, self.layout, self._seed = sent, layout, seed
        self._part = WorkerRecords(records, held_out, is_whole=True)
        self._models: dict[int, TorchModel] = {}

    def learner(self, comm: VirtualComm, order: Order, initial: NDArray) -> Learner:
        model = self._models[comm.rank] = TorchModel.learning(self._sent, self._seed, comm.rank)
        model.weights.copy_from(initial)
        batches = Batches(self._part.training, model.batch_size, order)
        virtual: Any = VirtualModule(model.learner(batches), comm)
        learner: Learner = virtual
        return learner

    def validation(self, comm: VirtualComm, metrics: Sequence[str]) -> Validate:
        return validation(self._models[comm.rank], self._part, comm, metrics)


def make_cast(setup: RunSetup, records: Records, held_out: Records | None, folder: Path) -> Cast:
    """Return what computes for the workers of a run."""
    if isinstance(setup, NetSetup):
        return NetCast(setup.net, records, held_out, folder, setup.identity["seed"])
    sent = setup.portable()
    assert isinstance(sent, PortableModule)
    layout = setup.weights().layout
    return ModuleCast(sent, layout, records, held_out, setup.identity["seed"])


class VirtualModule:
    """A `Learner` whose steps take what the comm's cluster says."""

    def __init__(self, inner: Learner, comm: VirtualComm) -> None:
        self._inner, self._comm = inner, comm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def on_gradient(self) -> OnGradient | None:
        return self._inner.on_gradient

    @on_gradient.setter
    def on_gradient(self, call: OnGradient | None) -> None:
        self._inner.on_gradient = call

    def step(self, count: int) -> Steps:
        done = repeat(lambda: self._timed(self._inner.step(1)), count)
        self._comm.spend(done.seconds)
        return done

    def compute_gradient(self) -> Steps:
        done = self._timed(self._inner.compute_gradient())
        self._comm.spend(done.seconds)
        return done

    def _timed(self, step: Steps) -> Steps:
        return replace(step, seconds=self._comm.pace.step(step.seconds), loading=0.0)
