"""Measuring C and S: from the rounds of short real runs with as many workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import mean, median
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from sparknet.comm.codecs import CODES, Coder
from sparknet.errors import SettingError
from sparknet.native import NDArray
from sparknet.training.events import Event
from sparknet.training.strategies import Averaging, Strategy
from sparknet.training.strategies.auto import Costs, added
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.workers.local import usable_cores

_WARM = 2
"""The first rounds of a run, which do not count."""
_LONG = 2.0
"""Seconds of a step above which smaller batches are measured, and the rest is calculated."""
_SHORT, _STEPS = 0.2, 10
"""Rounds take about so many seconds, and have no more steps: in short rounds the next records are
read while the workers synchronise, which makes steps look shorter than they are."""


class Runner(Protocol):
    """Trains for some seconds, and returns the events."""

    def __call__(
        self, solver: Any, workers: int, strategy: Strategy, seconds: float
    ) -> Sequence[Event]: ...


@dataclass(frozen=True)
class Measured:
    """C and S for a number of workers and a batch size, and how sure they are."""

    workers: int
    batch: int
    step: float
    """C: the mean over workers and rounds, in seconds."""
    slow: tuple[float, ...]
    """Each worker's C, relative to the mean."""
    jitter: float
    """The relative spread of the times of single steps of one worker."""
    latency: float
    """Seconds of a small message to all others."""
    transfer: float
    """Seconds of sending in a synchronisation, besides."""
    sync: float
    """S as the workers saw it: with the waiting for the slowest of them."""
    steps: int
    """Steps of the measured rounds."""
    rounds: int
    error: float
    """The relative standard error of the time of a round."""
    between: float = 0.0
    """Seconds between two rounds: reports, and how far the workers have moved."""
    calculated: bool = False
    """Whether C was calculated from smaller batches."""

    @property
    def costs(self) -> Costs:
        return Costs(self.step, self.sync)

    def cluster(self, nbytes: int, coding: dict[str, float] | None = None) -> Cluster:
        """Return the cluster of these times; other numbers of workers have the same network."""
        moved = 2 * (self.workers - 1) / self.workers * nbytes
        sending = max(self.transfer - 2 * self.latency, 0.05 * self.transfer)
        return Cluster(
            step=self.step,
            bandwidth=moved / sending if self.workers > 1 and sending > 0 else float("inf"),
            latency=self.latency,
            slow={rank: factor for rank, factor in enumerate(self.slow) if factor != 1.0},
            jitter=self.jitter,
            coding=coding or {},
        )


def measured(
    run: Runner, solver: Any, workers: int, batch: int, steps: int, seconds: float
) -> Measured:
    """Run for some seconds in rounds of so many steps."""
    events = run(solver, workers, Averaging(steps), seconds)
    rounds = [event for event in events if event["event"] == "round"]
    if not rounds:
        raise SettingError(f"no round of {workers} workers was measured: give more seconds")
    warm = [event["workers"] for event in rounds[min(_WARM, len(rounds) - 1) :]]
    return replace(summary(warm, batch), between=_between(rounds))


def _between(rounds: Sequence[Event]) -> float:
    """Return what passes between a round's end and the next one's beginning, usually."""
    ends = [float(event["total_seconds"]) for event in rounds]
    gaps = [
        end - before - _seconds(event["workers"])
        for before, end, event in zip(ends, ends[1:], rounds[1:], strict=False)
    ]
    return max(median(gaps), 0.0) if gaps else 0.0


def summary(rounds: Sequence[Sequence[Event]], batch: int) -> Measured:
    """Return the costs in rounds, each a dict for each worker."""
    workers, usual = len(rounds[0]), _usual(rounds)
    sums = [0.0, 0.0, 0.0]
    for one in usual:
        spent = [[w["steps"], w["seconds_computing"], w["seconds_communicating"]] for w in one]
        sums = added(sums, spent)
    costs = Costs.of(sums, len(usual))
    times = np.array([[w["seconds_computing"] / w["steps"] for w in one] for one in usual])
    own = times.mean(axis=0)
    steps = int(rounds[0][0]["steps"])
    spread = float(np.median(times.std(axis=0) / own)) if len(usual) > 2 else 0.0
    sending = [
        mean(w["seconds_communicating"] - w["seconds_waiting"] for w in one) for one in usual
    ]
    totals = [_seconds(one) for one in usual]
    error = float(np.std(totals) / mean(totals)) / sqrt(len(totals)) if len(totals) > 2 else 0.25
    return Measured(
        workers=workers,
        batch=batch,
        step=costs.step,
        slow=tuple(round(float(one / own.mean()), 4) for one in own),
        jitter=spread * sqrt(steps),
        latency=median(min(w["seconds_waiting"] for w in one) for one in usual),
        transfer=mean(sending) if workers > 1 else 0.0,
        sync=costs.sync,
        steps=steps,
        rounds=len(usual),
        error=error,
    )


def _usual(rounds: Sequence[Sequence[Event]]) -> list[Sequence[Event]]:
    """Without rounds that took three times as long as usual: something else was going on."""
    usual = median(map(_seconds, rounds))
    return [one for one in rounds if _seconds(one) <= 3 * usual]


def _seconds(workers: Sequence[Event]) -> float:
    return max(float(one["seconds_computing"] + one["seconds_communicating"]) for one in workers)


def measure(
    run: Runner,
    with_batch: Callable[[int], Any],
    workers: int,
    batch: int,
    pass_seconds: float,
    seconds: float,
) -> Measured:
    """C and S for batches of this size; ``pass_seconds`` is a rough time of a record's passes, and
    ``with_batch`` gives what is trained with a batch size.

    Where steps are long, C is calculated from two smaller batch sizes.
    """
    contention = max(1.0, workers / usable_cores())
    rough = pass_seconds * batch * contention
    steps = max(1, min(_STEPS, int(_SHORT / rough))) if rough else _STEPS
    if rough <= _LONG:
        return measured(run, with_batch(batch), workers, batch, steps, seconds)
    large = max(2, int(_LONG / (pass_seconds * contention)))
    small = max(1, large // 2)
    runs = [
        measured(run, with_batch(size), workers, size, 1, seconds / 2) for size in (small, large)
    ]
    return extrapolated(runs[0], runs[1], batch)


def extrapolated(small: Measured, large: Measured, batch: int) -> Measured:
    """C for a larger batch: a constant part, and one for each record.

    It is uncertain by what it would be without the constant part.
    """
    most = large.step / large.batch
    each = min(max((large.step - small.step) / (large.batch - small.batch), 0.0), most)
    step = large.step + each * (batch - large.batch)
    error = max(large.error, small.error, (most * batch - step) / step)
    return replace(large, batch=batch, step=step, error=error, calculated=True)


def coding_costs(floats: int = 1 << 20) -> dict[str, float]:
    """By codec: the seconds that coding and decoding take for each byte of a buffer."""
    buffer, costs = NDArray.full((floats,), 0.5), {}
    for codec in CODES:
        coder = Coder(codec, floats, (0, floats))  # type: ignore[arg-type]
        start = perf_counter()
        for code in coder.encode_all(buffer, [(0, floats)]):
            coder.decode(code, buffer)
        costs[codec] = 2 * (perf_counter() - start) / buffer.nbytes
    return costs
