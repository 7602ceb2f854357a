"""RunSpec: the description of a run that every worker gets, and the net or module it trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparknet import native
from sparknet.comm.rpc import Link
from sparknet.devices import device_of_worker, need_torch, resolve_device
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.backend import CPU, backend_called, find_backend
from sparknet.net.caffe_model import CaffeModel
from sparknet.net.model import Model
from sparknet.net.portable import Portable
from sparknet.net.scores import Goal
from sparknet.proto import caffe_pb2, parse_solver
from sparknet.torch.modules.flat_module import PortableModule
from sparknet.torch.modules.torch_model import TorchModel
from sparknet.training.schedule import RunPlan
from sparknet.training.settings.training import RunSettings
from sparknet.training.workers.records import WorkerPlace, WorkerRecords


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

    @property
    def is_elastic(self) -> bool:
        """Whether hosts come and go: others carry the workers of one that is lost."""
        return self.settings.min_hosts is not None

    def plan(self, records: int, batch_size: int, begun_with: int) -> RunPlan:
        """Return the plan, completed by what is known after the records are read.

        Iterations count by the number of workers that the run began with.
        """
        settings = replace(self.settings, workers=begun_with)
        return settings.plan(self.net, self.validates, records, batch_size, self.goals)


def make_model(spec: RunSpec, place: WorkerPlace, part: WorkerRecords) -> Model:
    """Return what a worker trains."""
    if computes(spec, place)["engine"] == "torch":
        need_torch().set_num_threads(native.threads())
    if not isinstance(spec.solver, Portable):
        return TorchModel.learning(spec.solver, spec.seed, place.rank)
    solver = parse_solver(spec.solver.unpacked(place.folder))
    solver.snapshot_prefix = str(place.folder / "solver")
    solver.snapshot_format = caffe_pb2.SolverParameter.BINARYPROTO
    if place.device is not None:
        find_backend(spec.settings.backend, spec.settings.precision).use(place.device)
    net = Net(
        solver,
        seed=spec.seed,
        precision=spec.settings.precision,
        device=_device(spec, place),
        preprocessing=spec.preprocessing,
        backend=spec.settings.backend,
    )
    if part.is_whole:
        net.set_training_data(part.training)  # the data may decide the net's shapes
    return CaffeModel(net, spec.seed, place.rank)


def computes(spec: RunSpec, place: WorkerPlace) -> dict[str, str]:
    """Return what a worker computes with, for an event."""
    if not isinstance(spec.solver, Portable):
        return {"engine": "torch", "device": spec.solver.device}
    backend = str(spec.settings.backend)
    if not backend_called(backend).is_embedded:
        on_gpu = place.device not in (None, CPU)
        return {"engine": backend, "device": f"cuda:{place.device}" if on_gpu else "cpu"}
    device = resolve_device(_device(spec, place))
    if device is not None:
        return {"engine": "torch", "device": device}
    return {"engine": "native", "device": "cpu"}


def _device(spec: RunSpec, place: WorkerPlace) -> str | None:
    if not backend_called(str(spec.settings.backend)).is_embedded:
        return spec.settings.device
    gpu = None if place.device == CPU else place.device
    return device_of_worker(spec.settings.device, place.rank, gpu)
