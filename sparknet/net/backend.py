"""Backends: the embedded pycaffe, or another one through its public interface."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from sparknet.errors import SpecError
from sparknet.net.scratch import scratch_folder
from sparknet.proto import caffe_pb2, write_text

NetMessage = caffe_pb2.NetParameter
SolverMessage = caffe_pb2.SolverParameter


class Backend(Protocol):
    """Makes nets and solvers with pycaffe's interface."""

    @property
    def precision(self) -> str:
        """The precision of multiplications."""

    def seed(self, seed: int | None) -> int:
        """Seed all that is made from now on; returns a seed for Net's own random numbers."""

    def net(self, net: NetMessage, phase: int, seed: int | None) -> Any: ...

    def solver(self, solver: SolverMessage) -> Any: ...


class Embedded:
    """The embedded sparknet.caffe, which takes messages directly."""

    def __init__(self, precision: str = "float32", keep_blobs: bool = False) -> None:
        from sparknet.caffe.precision import available

        self.precision = available(precision)
        self._options: dict[str, Any] = {"precision": self.precision, "keep_blobs": keep_blobs}

    def seed(self, seed: int | None) -> int:
        from sparknet.caffe.random import next_seed

        return next_seed() if seed is None else seed

    def net(self, net: NetMessage, phase: int, seed: int | None) -> Any:
        from sparknet.caffe import Net

        return Net.from_proto(net, phase, seed=seed, **self._options)

    def solver(self, solver: SolverMessage) -> Any:
        from sparknet.caffe import get_solver

        return get_solver(solver, **self._options)


class Pycaffe:
    """Any module with pycaffe's interface: it reads files, and has one global seed."""

    precision = "float32"

    def __init__(self, module: Any) -> None:
        self.module = module

    def seed(self, seed: int | None) -> int:
        if seed is None:
            return secrets.randbits(31)
        self.module.set_random_seed(seed)
        return seed

    def net(self, net: NetMessage, phase: int, seed: int | None) -> Any:
        return _from_file(net, lambda path: self.module.Net(path, phase))

    def solver(self, solver: SolverMessage) -> Any:
        return _from_file(solver, self.module.get_solver)


def find_backend(backend: Any, precision: str = "float32", keep_blobs: bool = False) -> Backend:
    """The backend of "embedded", "caffe" (or another module's name), or a module."""
    if backend == "embedded":
        return Embedded(precision, keep_blobs)
    module = _imported(backend) if isinstance(backend, str) else backend
    if getattr(module, "__name__", "") == "sparknet.caffe":
        return Embedded(precision, keep_blobs)
    if precision != Pycaffe.precision:
        raise SpecError(f"precision={precision!r} needs the embedded backend, not {backend!r}")
    for name in ("Net", "get_solver"):
        if not hasattr(module, name):
            raise SpecError(f"backend {module!r} is no pycaffe: it has no {name}")
    return Pycaffe(module)


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise SpecError(f"backend '{name}' cannot be imported: {error}") from error


def _from_file(message: Any, make: Callable[[str], Any]) -> Any:
    with scratch_folder() as folder:
        path = Path(folder) / "described.prototxt"
        write_text(path, message)
        return make(str(path))
