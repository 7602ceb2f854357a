"""Cast: what computes for virtual workers, a net's one engine or a module of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from sparknet.loaders.batches import BatchMaker, BatchWork
from sparknet.loaders.order import Order
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.portable import portable_solver
from sparknet.proto import parse_solver
from sparknet.training.learner import Learner
from sparknet.training.plan import Validate
from sparknet.training.training_net import settings
from sparknet.training.virtual.comm import VirtualComm
from sparknet.training.virtual.learner import Engine, VirtualLearner
from sparknet.weights import Layout, layout_of


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
        made = BatchWork(self._records, batch, order, False, self._transforms, order.cursor)
        return VirtualLearner(self._engine, comm, BatchMaker(made), initial)

    def validation(self, comm: VirtualComm, metrics: Sequence[str]) -> Validate:
        def validate() -> tuple[int, dict[str, float]]:
            assert self._held_out is not None
            first = comm.rank == 0
            return (len(self._held_out), self._net.measure(metrics)[1]) if first else (0, {})

        return validate


def _engine_net(net: Net, folder: Path, seed: int) -> Net:
    """The net of a worker, made as `worker` makes it."""
    solver = parse_solver(portable_solver(settings(net)).unpacked(folder))
    solver.snapshot_prefix = str(folder / "solver")
    return Net(
        solver,
        seed=seed,
        precision=net.precision,
        device=net.device,
        preprocessing=net.preprocessing,
    )
