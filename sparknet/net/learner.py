"""Learner: one worker's net and solver as a strategy trains them, as flat buffers and steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

from sparknet.caffe.solvers import Solver
from sparknet.loaders.batches import Batches
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.proto import caffe_pb2
from sparknet.weights import Span, WeightCollection

Cursor = dict[str, int]

OnGradient = Callable[[NDArray, NDArray], None]
"""Is given the weights, and the gradients that one worker's batch has at them."""

_WITH_MOMENTUM = frozenset({"SGD", "Nesterov"})


@dataclass(frozen=True)
class Steps:
    """The results of some iterations of one worker."""

    steps: int = 0
    samples: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    loading: float = 0.0
    """The part of ``seconds`` in which it waited for records."""

    def __add__(self, other: Steps) -> Steps:
        return Steps(
            self.steps + other.steps,
            self.samples + other.samples,
            self.loss_sum + other.loss_sum,
            self.seconds + other.seconds,
            self.loading + other.loading,
        )

    @property
    def loss(self) -> float:
        """The mean loss over the iterations; NaN if there was none."""
        return self.loss_sum / self.steps if self.steps else float("nan")


class Learner(Protocol):
    """The interface of training for strategies.  Buffers are flat, float32, of one length.

    A strategy may write to a buffer at any time; it asks for it again after each call that
    trains, because a learner may bring it up to date only then."""

    on_gradient: OnGradient | None
    """Called once, when the next gradient is computed; then it is None again."""

    @property
    def weights(self) -> NDArray: ...

    @property
    def gradients(self) -> NDArray: ...

    @property
    def histories(self) -> Sequence[NDArray]: ...

    @property
    def statistics(self) -> Sequence[Span]:
        """The spans of BatchNorm's running sums, which no gradient changes."""
        ...

    @property
    def momentum(self) -> float:
        """The momentum of a history that sums up rate · gradient (SGD, Nesterov); else 0."""
        ...

    @property
    def iter(self) -> int: ...

    @property
    def clipped(self) -> int:
        """The iterations so far whose gradients were scaled down to clip_gradients."""
        ...

    @property
    def rate(self) -> float:
        """The learning rate of the next iteration."""
        ...

    @property
    def last_rate(self) -> float:
        """The learning rate of the previous iteration."""
        ...

    def step(self, count: int) -> Steps:
        """Train for ``count`` iterations."""
        ...

    def compute_gradient(self) -> Steps:
        """Compute the gradients of one iteration; `apply_update` completes it."""
        ...

    def apply_update(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        """Update elements begin … end; ``norm`` returns the norm of the whole gradient."""
        ...

    def settle(self) -> None:
        """Let the net have what was written to the buffers; what trains does so by itself."""
        ...

    def seek(self, iteration: int) -> None:
        """Set the iteration, and with it the learning rate."""
        ...

    def state(self) -> dict[str, Any]:
        """State outside the buffers, as JSON: iteration, position in the data, random numbers."""
        ...

    def restore(self, state: Mapping[str, Any]) -> str:
        """Go on from such a state; returns what of it is lost, for people to read."""
        ...


def repeat(
    step: Callable[[], Steps], most: int, until: Callable[[Steps], bool] = lambda done: False
) -> Steps:
    """Call ``step`` until so many iterations are done, or ``until`` is true after one."""
    done = Steps()
    while done.steps < most:
        done += step()
        if until(done):
            break
    return done


class BatchSource(Protocol):
    """The source of a learner's batches."""

    def load(self) -> int:
        """Put the next batch into the net; returns its number of records."""
        ...

    @property
    def cursor(self) -> Cursor: ...

    def seek(self, cursor: Mapping[str, int]) -> None: ...


class FedLearner(ABC):
    """The steps of a `Learner` that a feed gives its batches."""

    last_rate: float

    def __init__(self, feed: BatchSource, settings: caffe_pb2.SolverParameter) -> None:
        self.feed, self.settings = feed, settings
        self.on_gradient: OnGradient | None = None
        self._samples, self._loading = 0, 0.0

    @property
    @abstractmethod
    def weights(self) -> NDArray: ...

    @property
    @abstractmethod
    def gradients(self) -> NDArray: ...

    @property
    def momentum(self) -> float:
        return float(self.settings.momentum) if self.settings.type in _WITH_MOMENTUM else 0.0

    def step(self, count: int) -> Steps:
        return repeat(self._step, count)

    def _step(self) -> Steps:
        start = perf_counter()
        gradient = self.compute_gradient()
        self._update()
        return replace(gradient, seconds=perf_counter() - start)

    def compute_gradient(self) -> Steps:
        start, self._samples, self._loading = perf_counter(), 0, 0.0
        loss = self._loss_and_gradient()
        waits, self.on_gradient = self.on_gradient, None
        if waits is not None:
            waits(self.weights, self.gradients)
        return Steps(1, self._samples, loss, perf_counter() - start, self._loading)

    def _load(self) -> None:
        start = perf_counter()
        self._samples += self.feed.load()
        self._loading += perf_counter() - start

    @abstractmethod
    def _loss_and_gradient(self) -> float:
        """Compute one iteration's gradients of the batches that `_load` puts into the net."""

    @abstractmethod
    def _update(self) -> None:
        """Complete the iteration."""


class SolverLearner(FedLearner):
    """A `Learner` with a solver of the embedded engine."""

    def __init__(self, solver: Solver, feed: BatchSource) -> None:
        super().__init__(feed, solver.param)
        self.solver = solver
        self.statistics = WeightCollection.of(solver.net, copy=False).layout.statistics
        self.last_rate = solver.lr
        solver.tells_clipping = False  # The events of a run count it, for all workers.

    @property
    def clipped(self) -> int:
        return self.solver.clipped

    @property
    def weights(self) -> NDArray:
        return self.solver.net.flat_params

    @property
    def gradients(self) -> NDArray:
        return self.solver.net.flat_diffs

    @property
    def histories(self) -> Sequence[NDArray]:
        return self.solver.flat_history

    @property
    def iter(self) -> int:
        return self.solver.iter

    @property
    def rate(self) -> float:
        return self.solver.lr

    def _loss_and_gradient(self) -> float:
        return self.solver.compute_gradient(self._load)

    def _update(self) -> None:
        self.last_rate = self.rate
        self.solver.apply_update()

    def apply_update(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        self.last_rate = self.rate
        self.solver.update_slice(begin, end, norm)

    def settle(self) -> None:
        """Do nothing: the buffers are the net's own memory."""

    def seek(self, iteration: int) -> None:
        self.solver.seek(iteration)

    def state(self) -> dict[str, Any]:
        iteration, lowered = self.solver.position
        seed, draws = self.solver.net.random_state
        return {
            "iteration": iteration,
            "lowered": lowered,
            "last_rate": self.last_rate,
            "cursor": dict(self.feed.cursor),
            "random": [seed, *draws],
        }

    def restore(self, state: Mapping[str, Any]) -> str:
        self.solver.seek(state["iteration"], state["lowered"])
        self.last_rate = state["last_rate"]
        self.feed.seek(state["cursor"])
        if "random" not in state:
            return (
                "the snapshot is of a backend that does not save its random numbers: "
                "layers that draw some will draw others than without the break"
            )
        seed, *draws = state["random"]
        self.solver.net.random_state = (seed, draws)
        return ""


class NetFeed:
    """Batches that go into a `Net`."""

    def __init__(self, net: Net, batches: Batches) -> None:
        self.batches, self._put = batches, net.feed(batches.columns)

    def load(self) -> int:
        return self._put(self.batches.next(), 0)

    @property
    def cursor(self) -> Cursor:
        return self.batches.cursor

    def seek(self, cursor: Mapping[str, int]) -> None:
        self.batches.seek(cursor)
