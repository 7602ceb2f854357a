"""A solver's memory: its histories beside the net's flat parameters, stepped in one pass."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sparknet.caffe.net import Net
from sparknet.errors import SolverError
from sparknet.layers import Shape
from sparknet.native import NDArray
from sparknet.native.solver import SolverPass

Array = np.ndarray[Any, Any]

_FLOAT_BYTES = 4


class Flat:
    """Histories in flat buffers as long as the net's parameters."""

    def __init__(self, net: Net, histories: int) -> None:
        self._runtime = net._runtime
        params = self._runtime.graph.params
        self._owners = [self._runtime.params[param.node][param.index] for param in params]
        self.rates = [param.lr_mult for param in params]
        """The factors of the rate that the net gives."""
        self._decays = [param.decay_mult for param in params]
        self._buffers = [
            NDArray.zeros((self._runtime.parameters.offsets[-1],)) for _ in range(histories)
        ]
        self._runtime.engine.hold(*self._buffers)
        self.shapes: list[Shape] = [param.shape for param in params] * histories
        """Of the history blobs, in the order of a solverstate."""
        self._slice: tuple[int, int, SolverPass] | None = None
        self._bind()

    @property
    def history(self) -> list[Array]:
        """The history blobs as views, in the order of a solverstate: buffer after buffer."""
        offsets, shapes = self._runtime.parameters.offsets, iter(self.shapes)
        return [
            np.asarray(buffer)[begin:end].reshape(next(shapes))
            for buffer in self.buffers
            for begin, end in pairwise(offsets)
        ]

    @property
    def buffers(self) -> list[NDArray]:
        """The histories' newest values, one buffer each; what is written there counts."""
        return [self._runtime.engine.at_host(buffer) for buffer in self._buffers]

    def gradient_norm(self) -> float:
        """Return the Euclidean norm of all gradients together, a float32 number."""
        return float(np.float32(self._runtime.parameters.norm_of_diffs()))

    def parts(self, factor: float) -> list[tuple[Array, Array, Array]]:
        """Return each parameter's values, gradient times a factor, and history, flat."""
        gradients = self._parts(np.asarray(self._runtime.parameters.diffs) * np.float32(factor))
        histories = self._parts(np.asarray(self.buffers[0]))
        values = (np.ravel(owner.data) for owner in self._owners)
        return list(zip(values, gradients, histories, strict=True))

    def take(self, rule: str, settings: tuple[float, ...], **numbers: Any) -> None:
        """Update all parameters (`SolverPass.take`)."""
        self._check_bound()
        if self._copy is None:
            self._step.take(rule, settings, **numbers)
            return
        self._runtime.parameters.to_host()
        _ = self.buffers  # are brought there, too
        flat = np.asarray(self._copy)
        np.concatenate([owner.data.ravel() for owner in self._owners], out=flat)
        self._step.take(rule, settings, **numbers)
        for owner, part in zip(self._owners, self._parts(flat), strict=True):
            owner.data[...] = part.reshape(owner.shape)

    def take_slice(
        self, begin: int, end: int, rule: str, settings: tuple[float, ...], **numbers: Any
    ) -> None:
        """`take` for elements begin … end of the buffers alone."""
        self._check_bound()
        if self._copy is not None:
            raise SolverError("a net that shares another's parameters is updated as a whole")
        if self._slice is None or self._slice[:2] != (begin, end):
            self._slice = (begin, end, self._step_over(begin, end))
        self._slice[2].take(rule, settings, **numbers)

    def _check_bound(self) -> None:
        now = [owner.array for owner in self._owners]
        if any(one is not other for one, other in zip(now, self._bound, strict=True)):
            self._bind()

    def _parts(self, flat: Array) -> list[Array]:
        return np.split(flat, self._runtime.parameters.offsets[1:-1])

    def _bind(self) -> None:
        """Find where the parameters lie: in the flat buffer, unless they share another net's."""
        runtime = self._runtime
        self._bound = [owner.array for owner in self._owners]
        begin = runtime.parameters.values.address
        flat = (
            all(
                array.address == begin + _FLOAT_BYTES * offset
                for array, offset in zip(self._bound, runtime.parameters.offsets, strict=False)
                if array.size
            )
            and runtime.parameters.values.size == runtime.parameters.offsets[-1]
        )
        self._copy = None if flat else NDArray.zeros((runtime.parameters.offsets[-1],))
        self._slice = None
        self._step = self._step_over(0, runtime.parameters.offsets[-1])

    def _step_over(self, begin: int, end: int) -> SolverPass:
        runtime = self._runtime
        apart = self._copy is not None
        return (SolverPass if apart else runtime.engine.solver_pass)(
            (runtime.parameters.values if self._copy is None else self._copy)[begin:end],
            runtime.parameters.diffs[begin:end],
            [buffer[begin:end] for buffer in self._buffers],
            [min(max(offset, begin), end) - begin for offset in runtime.parameters.offsets[1:]],
            self.rates,
            self._decays,
        )
