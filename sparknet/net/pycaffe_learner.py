"""PycaffeLearner: a learner over a pycaffe other than the embedded one, by its public names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from sparknet.caffe.solvers import SOLVERS
from sparknet.caffe.solvers.rate import current_step, learning_rate
from sparknet.errors import SolverError
from sparknet.layers import LAYERS, TRAIN, Shape, make
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.learner import BatchSource, FedLearner
from sparknet.proto import SolverState, caffe_pb2, read_state, write_state
from sparknet.weights import Layout, Scattered, Span, layout_of

Copy = Callable[[NDArray], None]


class Mirror:
    """A flat buffer whose values come from a backend, and go back if somebody writes there.

    ``gather`` fills the buffer from the backend, ``scatter`` does the opposite.  Both are put off
    for as long as possible: a round of many iterations takes one of each."""

    def __init__(self, size: int, gather: Copy, scatter: Copy) -> None:
        self._size, self._gather, self._scatter = size, gather, scatter
        self._buffer: NDArray | None = None
        self._is_stale = True
        self._version = 0

    @property
    def array(self) -> NDArray:
        """The buffer with the newest values, always the same one."""
        if self._buffer is None:
            self._buffer = NDArray.zeros((self._size,))
        if self._is_stale:
            self._gather(self._buffer)
            self._keep(self._buffer)
        return self._buffer

    @property
    def is_written(self) -> bool:
        """Whether somebody may have written to the buffer since it was like the backend's own."""
        if self._buffer is None or self._is_stale:
            return False
        return self._version == 0 or self._buffer.version != self._version

    def settle(self) -> None:
        """Let the backend have what was written to the buffer."""
        if self.is_written:
            self.send()

    def send(self) -> None:
        """Let the backend have the buffer's values, written or not."""
        buffer = self.array
        self._scatter(buffer)
        self._keep(buffer)

    def expire(self) -> None:
        """Note that the backend has newer values from now on."""
        self._is_stale = True

    def _keep(self, buffer: NDArray) -> None:
        self._is_stale, self._version = False, buffer.version


SolverMessage = caffe_pb2.SolverParameter

_NEAR = 1e-3
"""The relative error of the learning rate up to which a solver keeps an iteration of its own."""
_PRIME = 7919


@dataclass(frozen=True)
class _Position:
    """An iteration, and how often the rate has been lowered before it."""

    iteration: int
    lowered: int

    def rate(self, solver: SolverMessage) -> float:
        step = current_step(solver, self.iteration, self.lowered)
        return learning_rate(solver, self.iteration, step)

    def next(self, solver: SolverMessage) -> _Position:
        lowered = current_step(solver, self.iteration, self.lowered)
        return _Position(self.iteration + 1, lowered)

    @classmethod
    def at(cls, iteration: int, solver: SolverMessage) -> _Position:
        return cls(iteration, sum(value < iteration for value in solver.stepvalue))


class PycaffeLearner(FedLearner):
    """A `Learner` with the solver of any pycaffe.

    Weights and gradients are gathered from the layers and scattered to them.  Histories and the
    iteration are read and set through a solverstate, a file, by the solver's `snapshot` and
    `restore`.  All of this happens only when a strategy asks, and once for all iterations between.
    The solver's snapshot_prefix must lie in a folder of this learner alone."""

    def __init__(self, net: Net, feed: BatchSource, seed: int) -> None:
        assert net.settings is not None
        super().__init__(feed, net.settings)
        self.net = net
        self._solver, self._seed = net.solver, seed
        self._layout = layout_of(net.net)
        self.statistics = self._layout.statistics
        size, histories = self._layout.size, SOLVERS[self.settings.type].histories
        values, diffs = (
            of(net.net, self._layout) for of in (Scattered.values, Scattered.gradients)
        )
        self._weights = Mirror(size, values.gather, values.scatter)
        self._gradients = Mirror(size, diffs.gather, diffs.scatter)
        self._state = Mirror(size * histories, self._read_histories, self._write_state)
        self._shapes = _shapes(self._layout) * histories
        self._histories: list[NDArray] = []
        self._own = self._wanted = _Position.at(int(self._solver.iter), self.settings)
        self.last_rate = self.rate

    # -- what it is ----------------------------------------------------------------------

    @property
    def weights(self) -> NDArray:
        return self._weights.array

    @property
    def gradients(self) -> NDArray:
        return self._gradients.array

    @property
    def histories(self) -> Sequence[NDArray]:
        whole, size = self._state.array, self._layout.size
        if not self._histories:
            self._histories = [whole[at : at + size] for at in range(0, whole.size, size or 1)]
        return self._histories

    @property
    def clipped(self) -> int:
        """Real Caffe does not count."""
        return int(getattr(self._solver, "clipped", 0))

    @property
    def iter(self) -> int:
        return self._wanted.iteration

    @property
    def rate(self) -> float:
        return self._wanted.rate(self.settings)

    # -- training ------------------------------------------------------------------------

    def _loss_and_gradient(self) -> float:
        self.settle()
        loss = self.net.compute_gradients(self._load)
        self._gradients.expire()
        if self.statistics:  # the forward pass has changed them
            self._weights.expire()
        return loss

    def apply_update(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        """Update all elements, those outside of begin … end with gradients of 0."""
        if (begin, end) != (0, self._layout.size):
            gradients = self._gradients.array
            gradients[:begin].fill(0.0)
            gradients[end:].fill(0.0)
            gradients[begin:end].scale(self._clip(norm))
        self._gradients.settle()
        self._update()

    def _clip(self, norm: Callable[[], float]) -> float:
        """Return the factor of a slice of the gradients by the whole gradient's norm."""
        limit = float(self.settings.clip_gradients)
        return 1.0 if limit < 0 else min(1.0, limit / max(norm(), limit, 1e-30))

    def _update(self) -> None:
        self.settle()
        self.last_rate = self.rate
        self.net.apply_update()
        self._own, self._wanted = self._own.next(self.settings), self._wanted.next(self.settings)
        self._weights.expire()
        self._state.expire()

    def settle(self) -> None:
        self._weights.settle()
        if self._state.is_written or self._is_far():
            self._state.send()

    def _is_far(self) -> bool:
        """Return whether the solver's own iteration has another rate than the wanted one."""
        if self._own == self._wanted:
            return False
        own, goal = self._own.rate(self.settings), self.rate
        return self.settings.type == "Adam" or abs(own - goal) > _NEAR * abs(goal)

    # -- histories and iteration -----------------------------------------------------------

    def seek(self, iteration: int) -> None:
        self._wanted = _Position.at(iteration, self.settings)

    def _read_histories(self, whole: NDArray) -> None:
        """Copy the solver's histories out of a solverstate that it writes."""
        if self._own.iteration == 0:  # a new solver remembers nothing
            whole.fill(0.0)
            return
        self._solver.snapshot()
        model, path = (self._file(end) for end in ("caffemodel", "solverstate"))
        try:
            arrays = read_state(path).history
        finally:
            for file in (model, path):
                file.unlink(missing_ok=True)
        size = sum(array.size for array in arrays)
        if size != whole.size:
            raise SolverError(
                f"backend '{self.net.backend.name}': its solverstate holds {size} numbers of "
                f"history, {self.settings.type} of this net needs {whole.size}"
            )
        place = 0
        for array in arrays:
            whole[place : place + array.size].copy_from(array.reshape(-1))
            place += array.size

    def _write_state(self, whole: NDArray) -> None:
        """Restore the solver from a solverstate of these histories and the wanted iteration."""
        path, place, arrays = self._file("solverstate"), 0, []
        for shape in self._shapes:
            arrays.append(whole[place : place + prod(shape)].numpy().reshape(shape))
            place += prod(shape)
        position = self._wanted
        try:
            write_state(path, SolverState(position.iteration, "", position.lowered, arrays))
            self._solver.restore(str(path))
        finally:
            path.unlink(missing_ok=True)
        self._own = position

    def _file(self, end: str) -> Path:
        return Path(f"{self.settings.snapshot_prefix}_iter_{self._solver.iter}.{end}")

    # -- snapshots -------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        return {
            "iteration": self._wanted.iteration,
            "lowered": self._wanted.lowered,
            "last_rate": self.last_rate,
            "cursor": dict(self.feed.cursor),
        }

    def restore(self, state: Mapping[str, Any]) -> str:
        self._wanted = _Position(state["iteration"], state["lowered"])
        self.last_rate = state["last_rate"]
        self.feed.seek(state["cursor"])
        known_layers = [layer for layer in self.net.described.layer if layer.type in LAYERS]
        layers = [layer.name for layer in known_layers if make(layer, TRAIN).draws]
        if not layers:
            return ""
        self.net.backend.seed(self._seed + _PRIME * self.iter)
        return (
            f"backend '{self.net.backend.name}' does not save its random numbers: "
            f"{', '.join(layers)} will draw others than without the break"
        )


def _shapes(layout: Layout) -> list[Shape]:
    """Return the shapes of a history's blobs: one for each parameter, shared ones once."""
    spans, shapes = set[Span](), []
    for layer in layout.layers:
        for span, shape in zip(layer.spans, layer.shapes, strict=True):
            if span not in spans or span[0] == span[1]:
                shapes.append(shape)
            spans.add(span)
    return shapes
