"""ModuleCast: a module of PyTorch for each virtual worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.torch.modules.flat_module import PortableModule
from sparknet.training.learner import Learner, OnGradient, Steps, repeat
from sparknet.training.modules.learner import ModuleTrainee
from sparknet.training.plan import Validate
from sparknet.training.seat import Seat
from sparknet.training.virtual.comm import VirtualComm
from sparknet.training.worker_records import WorkerRecords
from sparknet.weights import Layout, Span

T = TypeVar("T")


class ModuleCast:
    """A module for each worker, made as workers make it."""

    def __init__(
        self,
        sent: PortableModule,
        layout: Layout,
        records: Records,
        held_out: Records | None,
        folder: Path,
        seed: int,
    ) -> None:
        self._sent, self.layout, self._folder, self._seed = sent, layout, folder, seed
        self._part = WorkerRecords(records, held_out, is_whole=True)
        self._trainees: dict[int, ModuleTrainee] = {}

    def learner(self, comm: VirtualComm, order: Order, initial: NDArray) -> Learner:
        seat = Seat(comm.rank, comm.size, "virtual", self._folder)
        made = self._trainees[comm.rank] = ModuleTrainee(self._sent, self._seed, seat)
        made.flat.weights.copy_from(initial)
        batches = Batches(self._part.training, made.batch_size, order)
        return VirtualModule(made.learner(batches), comm)

    def validation(self, comm: VirtualComm, metrics: Sequence[str]) -> Validate:
        return self._trainees[comm.rank].validation(self._part, comm, metrics)


class VirtualModule:
    """A `Learner` whose steps take what the comm's cluster says, with random numbers of its own:
    torch has one generator for all workers of a process."""

    def __init__(self, inner: Learner, comm: VirtualComm) -> None:
        import torch

        self._inner, self._comm = inner, comm
        self._random = torch.get_rng_state()

    @property
    def on_gradient(self) -> OnGradient | None:
        return self._inner.on_gradient

    @on_gradient.setter
    def on_gradient(self, call: OnGradient | None) -> None:
        self._inner.on_gradient = call

    @property
    def weights(self) -> NDArray:
        return self._inner.weights

    @property
    def gradients(self) -> NDArray:
        return self._inner.gradients

    @property
    def histories(self) -> Sequence[NDArray]:
        return self._inner.histories

    @property
    def statistics(self) -> Sequence[Span]:
        return self._inner.statistics

    @property
    def momentum(self) -> float:
        return self._inner.momentum

    @property
    def iter(self) -> int:
        return self._inner.iter

    @property
    def clipped(self) -> int:
        return self._inner.clipped

    @property
    def rate(self) -> float:
        return self._inner.rate

    @property
    def last_rate(self) -> float:
        return self._inner.last_rate

    def step(self, count: int) -> Steps:
        done = self._own(lambda: repeat(lambda: self._timed(self._inner.step(1)), count))
        self._comm.spend(done.seconds)
        return done

    def compute_gradient(self) -> Steps:
        done = self._own(lambda: self._timed(self._inner.compute_gradient()))
        self._comm.spend(done.seconds)
        return done

    def apply_update(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        self._inner.apply_update(begin, end, norm)

    def settle(self) -> None:
        self._inner.settle()

    def seek(self, iteration: int) -> None:
        self._inner.seek(iteration)

    def state(self) -> dict[str, Any]:
        return self._own(self._inner.state)

    def restore(self, state: Mapping[str, Any]) -> str:
        return self._own(lambda: self._inner.restore(state))

    def _timed(self, step: Steps) -> Steps:
        return replace(step, seconds=self._comm.pace.step(step.seconds), loading=0.0)

    def _own(self, call: Callable[[], T]) -> T:
        """What a call gives with this worker's random numbers."""
        import torch

        torch.set_rng_state(self._random)
        found = call()
        self._random = torch.get_rng_state()
        return found
