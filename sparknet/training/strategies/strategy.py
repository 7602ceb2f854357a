"""Strategy: how workers synchronise their weights, as a small program that each of them runs.

A strategy holds settings only.  Its `State` is what it remembers between rounds: NDArrays and
numbers, which `Strategy.round` changes and snapshots contain.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from sparknet.comm.collectives import Comm
from sparknet.errors import SettingError
from sparknet.native import NDArray
from sparknet.net.learner import Learner, Steps, repeat
from sparknet.weights import Span


@dataclass
class State:
    """What a strategy remembers.  Snapshots leave out fields marked `transient`."""

    round: int = field(default=0, kw_only=True)
    """Rounds done so far."""
    arrived: Callable[[int, float], None] | None = field(
        default=None, kw_only=True, metadata={"transient": True}
    )
    """Hears of a round that this worker has trained, and of its seconds."""

    def trained(self, train: Callable[[], Steps]) -> Steps:
        """Train in a round whose workers are waited for."""
        start = time.monotonic()
        done = train()
        if self.arrived is not None:
            self.arrived(self.round + 1, time.monotonic() - start)
        return done

    def arrays(self) -> dict[str, NDArray]:
        """Return the buffers, for snapshots."""
        return {name: value for name, value in self._saved() if isinstance(value, NDArray)}

    def numbers(self) -> dict[str, Any]:
        """Return the other fields, as JSON, for snapshots."""
        return {name: value for name, value in self._saved() if not isinstance(value, NDArray)}

    def _saved(self) -> Iterator[tuple[str, Any]]:
        for one in fields(self):
            if not one.metadata.get("transient"):
                yield one.name, getattr(self, one.name)


@dataclass(frozen=True)
class Round:
    """What a worker did in a round."""

    number: int
    """From 1 on."""
    steps: int
    samples: int
    loss: float
    """The mean over the worker's steps."""
    seconds_computing: float
    seconds_communicating: float
    bytes_sent: int
    divergence: float
    """How far the worker moved from the last synchronised weights, in the strategy's measure."""
    seconds_loading: float = 0.0
    """The part of computing in which the worker waited for its records."""
    seconds_waiting: float = 0.0
    """The part of communicating in which it waited for other workers."""
    note: str = ""
    """What the strategy decided, for people to read."""
    synchronised: bool = True
    """Whether the workers' weights came together at the end."""
    dropped_pushes: int = 0
    """Pushes of this worker that the server dropped because they were too stale."""


@dataclass(frozen=True, kw_only=True)
class Strategy(ABC):
    """Settings, checked when the object is made.  Concrete strategies are final."""

    name: ClassVar[str]
    """Its name in `STRATEGIES` and on the command line."""
    slices_histories: ClassVar[bool] = False
    """Whether of the solver's histories each worker has its own slice alone."""

    @property
    def parts(self) -> int:
        """How many parts of the weights are synchronised at times of their own."""
        return 1

    @property
    def depends_on_time(self) -> bool:
        """Whether measured times decide what workers compute, and so the trained weights."""
        return False

    leaves_behind: ClassVar[bool] = False
    """Whether workers wait for each other at the ends of rounds alone (`State.trained`)."""

    warmup: int = 0
    """Iterations that worker 0 trains alone before the first round."""
    unequal: float = 0.0
    """The noise in the other workers' initial weights, as a share of their root mean square."""

    def __post_init__(self) -> None:
        try:
            self.need(self.warmup >= 0, "warmup", "at least 0")
            self.need(0 <= self.unequal < float("inf"), "unequal", "at least 0")
            self.check()
        except TypeError:  # a text or a list was compared with a number
            for one in fields(self):
                value = getattr(self, one.name)
                worded = isinstance(one.default, str) or one.name == "codec"
                if not worded and isinstance(value, (str, list, tuple, dict)):
                    self.need(False, one.name, "a number")
            raise

    @abstractmethod
    def check(self) -> None:
        """Refuse settings that make no sense."""

    def need(self, holds: bool, setting: str, wanted: str) -> None:
        if not holds:
            value = getattr(self, setting)
            raise SettingError(f"{type(self).__name__}: {setting} must be {wanted}, not {value!r}")

    def make_unequal(self, learner: Learner, rank: int, seed: int) -> None:
        """Add noise to the initial weights of all workers but the first, as `unequal` says."""
        if not (rank and self.unequal):
            return
        generator = np.random.default_rng([seed, rank])
        for begin, end in learned_spans(learner.weights.size, learner.statistics):
            part = learner.weights[begin:end]
            scale = self.unequal * part.norm2() / sqrt(end - begin)
            part.add(NDArray(generator.normal(0, scale, end - begin)))
        learner.settle()

    @property
    def needs_state(self) -> bool:
        """Whether it needs the solvers' histories, or sets their iteration."""
        return self.warmup > 0

    @abstractmethod
    def start(self, learner: Learner, comm: Comm) -> State:
        """Return the state before the first round; all workers have the same weights."""

    @abstractmethod
    def round(self, learner: Learner, comm: Comm, state: State, most: int) -> Round:
        """Train for at most ``most`` iterations, then synchronise.

        With one worker this is plain training.
        """

    def model(self, learner: Learner, comm: Comm, state: State) -> NDArray:
        """Return the weights to validate and to save; the same on every worker."""
        return learner.weights

    def finish(self, learner: Learner, comm: Comm, state: State) -> None:  # noqa: B027
        """Called after the last round: makes every learner's weights the model."""

    def regroup(self, learner: Learner, comm: Comm, state: State, before: int) -> None:  # noqa: B027
        """Called when a snapshot of ``before`` workers was loaded by another number of them.

        Weights, histories and state are the same on all, the means of what each worker had.
        """

    def keeps_apart(self, state: State) -> bool:
        """Return whether workers have weights of their own after this round."""
        return False

    def part(self, state: State) -> None:  # noqa: B027
        """Called when a generation ends after a round."""

    def extras(self, learner: Learner, comm: Comm) -> dict[str, NDArray]:
        """Further buffers that snapshots contain."""
        return {}

    def settings(self) -> dict[str, Any]:
        """Return the name and settings as JSON."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def setting_names(cls) -> list[str]:
        return [field.name for field in fields(cls)]


class RoundMeter:
    """Measures a round: the bytes sent and the time spent in communication."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm
        self._before = replace(comm.traffic)

    def round(self, number: int, done: Steps, divergence: float) -> Round:
        alone = Round(
            number,
            done.steps,
            done.samples,
            done.loss,
            done.seconds,
            0.0,
            0,
            divergence,
            done.loading,
        )
        return self.around(alone)

    def around(self, inner: Round) -> Round:
        """Return a round measured elsewhere, with the traffic before and after it added."""
        now, before = self._comm.traffic, self._before
        return replace(
            inner,
            seconds_communicating=now.seconds - before.seconds,
            bytes_sent=now.sent - before.sent,
            seconds_waiting=now.waiting - before.waiting,
        )


def follow_first(learner: Learner, comm: Comm) -> None:
    """Give all workers the weights, histories and iteration of worker 0."""
    comm.broadcast(learner.weights)
    iterations = comm.gather(learner.iter)
    if any(iterations):  # the histories of new solvers are zeros
        for history in learner.histories:
            comm.broadcast(history)
    if iterations[0] != learner.iter:
        learner.seek(int(iterations[0]))


def warm_up(learner: Learner, comm: Comm, steps: int) -> Round:
    """Train worker 0 alone, then give all workers its weights, histories and iteration.

    Workers exchange a message several times within the deadline, so that a long warm-up is not
    taken for a dead worker.
    """
    meter, done = RoundMeter(comm), Steps()
    while True:
        if comm.rank == 0:
            missing = steps - done.steps
            done += repeat(partial(learner.step, 1), missing, _after(comm.deadline / 4, comm))
        if not comm.any(comm.rank == 0 and done.steps < steps):
            break
    follow_first(learner, comm)
    return meter.round(0, done, 0.0)


def _after(seconds: float, comm: Comm) -> Callable[[Steps], bool]:
    """Return whether so many seconds are over."""
    until = comm.clock() + seconds
    return lambda done: comm.clock() >= until


# -- BatchNorm's running sums, and distances without them ----------------------------


def take_statistics(buffer: NDArray, spans: Sequence[Span]) -> NDArray:
    """Return a copy of the statistics, one after the other."""
    packed = NDArray.empty((sum(end - begin for begin, end in spans),))
    for place, (begin, end) in _places(spans):
        packed[place : place + end - begin].copy_from(buffer[begin:end])
    return packed


def put_statistics(buffer: NDArray, spans: Sequence[Span], packed: NDArray) -> None:
    """Write back what `take_statistics` returned."""
    for place, (begin, end) in _places(spans):
        buffer[begin:end].copy_from(packed[place : place + end - begin])


def clear_statistics(buffer: NDArray, spans: Sequence[Span]) -> None:
    for begin, end in spans:
        buffer[begin:end].fill(0.0)


def average_statistics(learner: Learner, comm: Comm) -> None:
    """Average the workers' statistics."""
    if learner.statistics:
        packed = take_statistics(learner.weights, learner.statistics)
        comm.mean(packed)
        put_statistics(learner.weights, learner.statistics, packed)


def learned_spans(size: int, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the spans of a buffer that gradients change."""
    begin = 0
    for first, last in spans:
        if begin < first:
            yield begin, first
        begin = last
    if begin < size:
        yield begin, size


def distance_to(learner: Learner, center: NDArray) -> float:
    """Return the sum of absolute differences between the weights and a center: ‖x_i - x‖₁."""
    spans = learned_spans(center.size, learner.statistics)
    far: Iterator[float] = (learner.weights[b:e].distance1(center[b:e]) for b, e in spans)
    return sum(far)


def drift_from(learner: Learner, center: NDArray) -> float:
    """Return the distance of the weights from a center, relative to its norm: ‖x_i - x‖₂ / ‖x‖₂."""
    far = size = 0.0
    for begin, end in learned_spans(center.size, learner.statistics):
        far += learner.weights[begin:end].distance2(center[begin:end]) ** 2
        size += center[begin:end].norm2() ** 2
    return sqrt(far / size) if size else sqrt(far)


def _places(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    place = 0
    for begin, end in spans:
        yield place, (begin, end)
        place += end - begin
