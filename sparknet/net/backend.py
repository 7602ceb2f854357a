"""Backends: the embedded pycaffe, or another one through its public interface."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from sparknet.devices import requested_device, resolve_device
from sparknet.errors import SpecError, clean
from sparknet.native import NDArray
from sparknet.net.scratch import scratch_folder
from sparknet.proto import caffe_pb2, write_text
from sparknet.weights import NOTHING, Opened, copy_weights

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision

NetMessage = caffe_pb2.NetParameter
SolverMessage = caffe_pb2.SolverParameter


EMBEDDED = "embedded"

_CALLED = ("Net", "get_solver", "set_mode_cpu", "set_random_seed")
_OF_A_GPU = ("set_mode_gpu", "set_device")
_SEEDS = 1 << 32
"""Caffe's seeds are below this."""

CPU = -1
"""The device of `Backend.use` that is no GPU."""


class Backend(Protocol):
    """Makes nets and solvers with pycaffe's interface."""

    @property
    def name(self) -> str:
        """EMBEDDED, or the name under which Python imports the module."""

    @property
    def is_embedded(self) -> bool:
        """Whether nets are of sparknet's own engine: weights in one buffer, a graph, eight bits."""

    @property
    def precision(self) -> Precision:
        """The precision of multiplications."""

    @property
    def device(self) -> str | None:
        """PyTorch's name of where it computes; None where that is not PyTorch's matter."""

    @property
    def named_device(self) -> str | None:
        """The device that a program has named; None where it left the choice."""

    def lacking(self, gpu: bool = False) -> list[str]:
        """Return the names that it lacks to compute, on a GPU or on the CPU."""

    def use(self, device: int) -> None:
        """Compute on the GPU of this number, or on the CPU."""

    def seed(self, seed: int | None) -> int:
        """Seed all that is made from now on; returns a seed for Net's own random numbers."""

    def draw_apart(self, net: Any, seed: int, rank: int) -> None:
        """Let a worker's net, which was made with ``seed``, draw other numbers than the others."""

    def net(
        self,
        net: NetMessage,
        phase: int,
        seed: int | None,
        params: NDArray | None = None,
        weights: Opened = NOTHING,
    ) -> Any:
        """Return a net over the buffer ``params``, with layers of ``weights`` copied by name."""

    def solver(self, solver: SolverMessage) -> Any: ...


class Embedded:
    """The embedded sparknet.caffe, which takes messages directly."""

    name = EMBEDDED
    is_embedded = True

    def __init__(
        self, precision: Precision = "float32", keep_blobs: bool = False, device: str | None = None
    ) -> None:
        from sparknet.caffe.precision import available

        self.named_device = requested_device(device)
        self.device = resolve_device(device)
        self.precision = available(precision, self.device)
        self.keeps_blobs = keep_blobs
        self._options: dict[str, Any] = {
            "precision": self.precision,
            "keep_blobs": keep_blobs,
            "device": device,
        }

    def lacking(self, gpu: bool = False) -> list[str]:
        return []

    def use(self, device: int) -> None:
        """Do nothing: `device` says where it computes."""

    def seed(self, seed: int | None) -> int:
        from sparknet.caffe.modes import next_seed

        return next_seed() if seed is None else seed

    def draw_apart(self, net: Any, seed: int, rank: int) -> None:
        own, draws = net.random_state
        net.random_state = (own + rank, draws)

    def net(
        self,
        net: NetMessage,
        phase: int,
        seed: int | None,
        params: NDArray | None = None,
        weights: Opened = NOTHING,
    ) -> Any:
        from sparknet.caffe import Net

        models = list(weights.values())
        return Net.from_proto(net, phase, seed=seed, params=params, models=models, **self._options)

    def solver(self, solver: SolverMessage) -> Any:
        from sparknet.caffe import get_solver

        return get_solver(solver, **self._options)


class Pycaffe:
    """Any module with pycaffe's interface: it reads files, and has one global seed."""

    is_embedded = False
    precision: Precision = "float32"
    device: str | None = None
    named_device: str | None = None
    keeps_blobs = True

    def __init__(self, module: Any, name: str) -> None:
        self.module, self.name = module, name

    def __reduce__(self) -> tuple[Any, ...]:
        return backend_called, (self.name,)

    def lacking(self, gpu: bool = False) -> list[str]:
        names = [*_CALLED, *(_OF_A_GPU if gpu else ())]
        return [name for name in names if not hasattr(self.module, name)]

    def use(self, device: int) -> None:
        if device == CPU:
            self.module.set_mode_cpu()
            return
        self.module.set_device(device)
        self.module.set_mode_gpu()

    def seed(self, seed: int | None) -> int:
        if seed is None:
            return secrets.randbits(31)
        self.module.set_random_seed(seed % _SEEDS)
        return seed

    def draw_apart(self, net: Any, seed: int, rank: int) -> None:
        self.seed(seed + rank)

    def net(
        self,
        net: NetMessage,
        phase: int,
        seed: int | None,
        params: NDArray | None = None,
        weights: Opened = NOTHING,
    ) -> Any:
        if params is not None:
            raise SpecError("weights in one buffer need the embedded backend")
        net_of_file = _from_file(net, lambda path: self.module.Net(path, phase))
        copy_weights(net_of_file, weights)
        return net_of_file

    def solver(self, solver: SolverMessage) -> Any:
        return _from_file(solver, self.module.get_solver)


def find_backend(
    backend: str | ModuleType,
    precision: Precision = "float32",
    keep_blobs: bool = False,
    device: str | None = None,
) -> Backend:
    """Return the backend of "embedded", "caffe" (or another module's name), or a module."""
    if backend == EMBEDDED:
        return Embedded(precision, keep_blobs, device)
    module = import_backend(backend) if isinstance(backend, str) else backend
    name = getattr(module, "__name__", repr(module))
    if name == "sparknet.caffe":
        return Embedded(precision, keep_blobs, device)
    if device is not None:
        raise SpecError(f"device={device!r} needs the embedded backend, not {backend!r}")
    if precision != Pycaffe.precision:
        raise SpecError(f"precision={precision!r} needs the embedded backend, not {backend!r}")
    pycaffe = Pycaffe(module, backend if isinstance(backend, str) else name)
    if lacking := pycaffe.lacking():
        raise SpecError(f"backend {module!r} is not a pycaffe module: it has no {lacking[0]}")
    return pycaffe


def backend_called(name: str) -> Backend:
    """Return the backend of a name, whatever it lacks."""
    return Embedded() if name == EMBEDDED else Pycaffe(import_backend(name), name)


def import_backend(name: str) -> Any:
    try:
        return import_module(name)
    except Exception as error:  # a built Caffe may raise any when it meets a newer numpy
        raise SpecError(f"backend '{name}' cannot be imported: {clean(error)}") from error


def _from_file(message: Any, make: Callable[[str], Any]) -> Any:
    with scratch_folder() as folder:
        path = Path(folder) / "described.prototxt"
        write_text(path, message)
        return make(str(path))
