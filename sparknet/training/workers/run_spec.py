"""RunSpec: the description of a run that every worker gets, and the net or module it trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from sparknet import native
from sparknet.comm.collectives import Comm
from sparknet.comm.rpc import Link
from sparknet.devices import device_of_worker, need_torch, resolve_device
from sparknet.loaders.batches import Batches, Transforms
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.backend import CPU, backend_called, find_backend
from sparknet.net.first_records import chance_loss
from sparknet.net.portable import Portable
from sparknet.net.scores import Goal
from sparknet.proto import caffe_pb2, parse_solver
from sparknet.torch.modules.flat_module import PortableModule
from sparknet.training.learner import Learner, NetFeed, SolverLearner
from sparknet.training.modules.learner import ModuleTrainee
from sparknet.training.pycaffe_learner import PycaffeLearner
from sparknet.training.schedule import RunPlan, Validate
from sparknet.training.settings.training import RunSettings
from sparknet.training.workers.records import WorkerPlace, WorkerRecords, validation
from sparknet.weights import Layout, layout_of


@dataclass(frozen=True)
class RunSpec:
    """What a run is, the same for all workers: small, without weights."""

    link: Link
    """The link to the driver."""
    solver: Portable | PortableModule
    seed: int
    """The seed of the net's random numbers; that of the records' order is a setting."""
    net: str
    """The net's name, for events."""
    settings: RunSettings
    """What the user set, with what can be sent to a worker: the strategy made, no listener."""
    validates: bool
    folder: str | None
    """The folder of the driver's store for snapshots, if workers reach it themselves."""
    identity: dict[str, Any]
    """What must be equal in a snapshot to resume it, beside workers and strategy."""
    preprocessing: Preprocessing | None = None
    """What was asked for images."""
    goals: Mapping[str, Goal] = field(default_factory=dict)
    """Whether a larger or a smaller value of a metric is better, where that is known."""
    elastic: bool = False
    """Whether those that are left go on when workers are lost."""

    def plan(self, records: int, batch_size: int, begun_with: int) -> RunPlan:
        """The plan, completed by what is known after the records are read.

        Iterations count by the number of workers that the run began with.
        """
        settings = replace(self.settings, workers=begun_with)
        return settings.plan(self.net, self.validates, records, batch_size, self.goals)


class Trainee(Protocol):
    """What a worker trains."""

    batch_size: int
    """Records of a batch."""
    iter_size: int
    """Batches of an iteration."""

    @property
    def transforms(self) -> Transforms: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def chance(self) -> float | None:
        """The loss of a model that guesses, where that is known."""
        ...

    def learner(self, batches: Batches) -> Learner:
        """Return what trains it, with random numbers of this worker's own; the weights come
        later.
        """
        ...

    def validation(self, part: WorkerRecords, comm: Comm, metrics: Sequence[str]) -> Validate: ...

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the least and the largest value of each input's last batch, but of labels."""
        ...


def make_trainee(spec: RunSpec, seat: WorkerPlace, part: WorkerRecords) -> Trainee:
    if computes(spec, seat)["engine"] == "torch":
        need_torch().set_num_threads(native.threads())
    if isinstance(spec.solver, Portable):
        return NetTrainee(spec, spec.solver, seat, part)
    return ModuleTrainee(spec.solver, spec.seed, seat)


def computes(spec: RunSpec, seat: WorkerPlace) -> dict[str, str]:
    """Return what a worker computes with, for an event."""
    if not isinstance(spec.solver, Portable):
        return {"engine": "torch", "device": spec.solver.device}
    backend = str(spec.settings.backend)
    if not backend_called(backend).is_embedded:
        on_gpu = seat.device not in (None, CPU)
        return {"engine": backend, "device": f"cuda:{seat.device}" if on_gpu else "cpu"}
    device = resolve_device(_device(spec, seat))
    if device is not None:
        return {"engine": "torch", "device": device}
    return {"engine": "native", "device": "cpu"}


def _device(spec: RunSpec, seat: WorkerPlace) -> str | None:
    if not backend_called(str(spec.settings.backend)).is_embedded:
        return spec.settings.device
    gpu = None if seat.device == CPU else seat.device
    return device_of_worker(spec.settings.device, seat.rank, gpu)


class NetTrainee:
    """A net with its solver."""

    def __init__(
        self, spec: RunSpec, sent: Portable, seat: WorkerPlace, part: WorkerRecords
    ) -> None:
        solver = parse_solver(sent.unpacked(seat.folder))
        solver.snapshot_prefix = str(seat.folder / "solver")
        solver.snapshot_format = caffe_pb2.SolverParameter.BINARYPROTO
        if seat.device is not None:
            find_backend(spec.settings.backend, spec.settings.precision).use(seat.device)
        self.net = Net(
            solver,
            seed=spec.seed,
            precision=spec.settings.precision,
            device=_device(spec, seat),
            preprocessing=spec.preprocessing,
            backend=spec.settings.backend,
        )
        self._seed, self._rank = spec.seed, seat.rank
        if part.is_whole:
            self.net.set_training_data(part.training)  # the data may decide the net's shapes
        self.batch_size = self.net.batch_size
        self.iter_size = int(solver.iter_size)

    @property
    def transforms(self) -> Transforms:
        return self.net.staged_transforms

    @property
    def layout(self) -> Layout:
        return layout_of(self.net.net)

    @property
    def chance(self) -> float | None:
        return chance_loss(self.net)

    def learner(self, batches: Batches) -> Learner:
        net, feed = self.net, NetFeed(self.net, batches)
        learner: Learner
        if net.backend.is_embedded:
            learner = SolverLearner(net.solver, feed)
        else:
            learner = PycaffeLearner(net, feed, self._seed + self._rank)
        net.backend.draw_apart(net.net, self._seed, self._rank)
        return learner

    def validation(self, part: WorkerRecords, comm: Comm, metrics: Sequence[str]) -> Validate:
        return validation(self.net, part, comm, metrics)

    def ranges(self) -> dict[str, tuple[float, float]]:
        ranges = {}
        for name, entry in self.net.inputs.items():
            values = np.asarray(self.net.net.blobs[name].data)
            if not entry.is_label and values.size:
                ranges[name] = float(values.min()), float(values.max())
        return ranges
