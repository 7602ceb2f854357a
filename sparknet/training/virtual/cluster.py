"""Cluster: what computing and sending cost on a cluster that is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import numpy as np

from sparknet.comm.grid import grid_of
from sparknet.errors import SettingError


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The times of a cluster's workers and network.

    A message to all others takes ``latency`` + (K - 1) · ``overhead`` + bytes / ``bandwidth``;
    a mean over K workers is one small message and two of (K - 1) / K of the buffer.  More than a
    dozen workers pass it on along the axes of a grid, each of which takes a ``latency``, to fewer
    peers.
    """

    step: float | None = None
    """C, the seconds of one step; unless given, each step takes what it takes here."""
    bandwidth: float = 125e6
    """Bytes a second that a worker sends, and at the same time receives; 1 Gbit/s."""
    latency: float = 5e-4
    overhead: float = 0.0
    """Seconds for each peer that a message goes to."""
    coding: Mapping[str, float] = field(default_factory=dict)
    """By codec: the seconds that coding and decoding take for each byte of a buffer."""
    slow: Mapping[int, float] = field(default_factory=dict)
    """Stragglers: the factor of a worker's steps, by rank."""
    jitter: float = 0.0
    """The relative spread of the times of steps (the sigma of a lognormal factor of mean 1)."""
    failures: Sequence[tuple[int, float]] = ()
    """Pairs of a worker and the time at which it is lost."""
    mtbf: float = inf
    """The mean time between two failures of one worker, besides ``failures``."""
    restart: float = 30.0
    """Seconds from a failure until all workers go on from the newest snapshot."""
    seed: int = 0
    """Of jitter and failures."""

    def __post_init__(self) -> None:
        for name in ("bandwidth", "mtbf"):
            self._need(name, getattr(self, name) > 0, "more than 0")
        for name in ("latency", "overhead", "jitter", "restart"):
            value = getattr(self, name)
            self._need(name, isfinite(value) and value >= 0, "at least 0")
        self._need("step", self.step is None or 0 <= self.step < inf, "at least 0, or None")
        self._need("slow", all(0 < one < inf for one in self.slow.values()), "factors over 0")

    def _need(self, name: str, holds: bool, wanted: str) -> None:
        if not holds:
            raise SettingError(f"a cluster's {name} must be {wanted}, not {getattr(self, name)!r}")

    def with_sync(self, seconds: float, nbytes: int, workers: int) -> Cluster:
        """Return the same, with a network on which a mean of ``nbytes`` takes ``seconds``."""
        cluster = replace(self, latency=0.0, overhead=0.0)
        if workers < 2 or seconds <= 0:
            return replace(cluster, bandwidth=inf)
        return replace(cluster, bandwidth=2 * (workers - 1) / workers * nbytes / seconds)

    def message(self, nbytes: float, workers: int) -> float:
        """Return the seconds of a message to all others, ``nbytes`` in all from each worker."""
        if workers < 2:
            return 0.0
        grid = grid_of(workers)
        hops = len(grid.axes) + bool(grid.guests)
        return hops * self.latency + len(grid.links(0)) * self.overhead + nbytes / self.bandwidth

    def sync(self, nbytes: float, workers: int) -> float:
        """S, the seconds of a mean over all workers."""
        part = nbytes * (workers - 1) / workers
        return self.message(0, workers) + 2 * self.message(part, workers)


class Pace:
    """The times of one worker's steps, in order, and of its failures."""

    def __init__(self, cluster: Cluster, rank: int) -> None:
        self._cluster = cluster
        self._steps, self._ends = (
            np.random.default_rng([cluster.seed, rank, number]) for number in range(2)
        )
        self._factor = float(cluster.slow.get(rank, 1.0))
        self._given = sorted(at for worker, at in cluster.failures if worker == rank)
        self._drawn = 0.0
        self._loss = self._following(0.0)

    def step(self, measured: float) -> float:
        """Return the seconds of the next step, which took ``measured`` here."""
        seconds, sigma = self._cluster.step, self._cluster.jitter
        spread = float(np.exp(self._steps.normal(-(sigma**2) / 2, sigma))) if sigma else 1.0
        return (measured if seconds is None else seconds) * self._factor * spread

    def loss_time(self, now: float) -> float | None:
        """Return the time of a failure up to now, which then is past."""
        if now < self._loss:
            return None
        at, self._loss = self._loss, self._following(now)
        return at

    def _following(self, now: float) -> float:
        if self._drawn <= now:
            wait = self._cluster.mtbf
            self._drawn = now + float(self._ends.exponential(wait)) if wait < inf else inf
        return min(self._drawn, next((at for at in self._given if at > now), inf))
