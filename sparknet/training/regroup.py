"""Regroup: another number of workers goes on from a snapshot.

Worker 0 reads the files and gives the others what they need.  What each worker had of its own
becomes the mean over the workers that wrote it; slices are put together and cut anew.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.comm.collectives import Comm
from sparknet.native import NDArray
from sparknet.training.snapshot import Saved
from sparknet.training.worker_state import Values

Json = dict[str, Any]


@dataclass(frozen=True)
class Carried:
    """What goes over to another number of workers, beside the arrays."""

    numbers: Json
    """Those of worker 0."""
    learners: list[Json]
    """The states of all learners."""
    averaged: list[str]
    """The arrays that were not the same on all workers."""
    dropped: list[str]
    """The arrays for which this number of workers has no use."""

    def learner_of(self, rank: int, own: Json) -> Json:
        """The state of a worker's learner, whose own one is ``own`` before.

        A worker more has random numbers of its own seed, as far on as those of worker 0.  An
        optimizer's numbers are by parameter, of which each worker of ``allreduce`` had some.
        """
        state = dict(self.learners[min(rank, len(self.learners) - 1)])
        if "optimizer" in state:
            every = [one["optimizer"] for one in self.learners]
            state["optimizer"] = dict(ChainMap({**state["optimizer"]}, *every))
        if rank >= len(self.learners) and "random" in own:
            mine, first = own["random"], state.get("random")
            if isinstance(mine, list) and isinstance(first, list):
                mine = [mine[0], *first[1:]]
            state["random"] = mine
        return {**state, "cursor": {"of": [one["cursor"] for one in self.learners]}}

    def told(self, workers: int) -> str:
        """What became of it, in a sentence."""
        before = len(self.learners)
        told = f"the snapshot is of {before} workers, and {workers} go on from it"
        if self.averaged:
            told += f"; each has the mean of their {', '.join(self.averaged)}"
        if self.dropped:
            told += f"; the {', '.join(self.dropped)} are of no use to them and are dropped"
        return told


def regroup(
    saved: Saved,
    comm: Comm,
    arrays: Mapping[str, NDArray],
    sliced: Collection[str],
    optional: Collection[str],
    alone: Collection[str],
) -> Carried:
    """Fill ``arrays`` from a snapshot of another number of workers, if all fit.

    Those named in ``sliced`` are this worker's slices of buffers as long as the weights.  Those in
    ``optional`` may be missing, there or here, and those in ``alone`` are worker 0's.
    """
    told: Json | None = None
    found: dict[str, Values] = {}
    every = comm.gather({name: arrays[name].size for name in sliced if name in arrays})
    wholes = {name: sum(one[name] for one in every) for name in every[0]}
    if comm.rank == 0:
        carried, found = _read(saved, sliced)
        for name in optional:
            if name in found and name not in arrays:
                del found[name]
                carried.dropped.extend([name] * (name not in alone))
        saved.check_sizes(0, found, _sizes(arrays, wholes, {*optional}.difference(found)))
        for name in {*alone}.intersection(found):
            arrays[name].copy_from(NDArray.view(found.pop(name)))
        told = {"carried": vars(carried), "names": [*found]}
    said = comm.gather(told)[0]
    for name in said["names"]:
        _share(comm, arrays[name], found.get(name), wholes.get(name))
    return Carried(**said["carried"])


def _sizes(
    arrays: Mapping[str, NDArray], wholes: Mapping[str, int], missing: Collection[str]
) -> dict[str, int]:
    """The lengths that a snapshot's arrays must have as a whole."""
    return {
        name: wholes.get(name, array.size) for name, array in arrays.items() if name not in missing
    }


def _share(comm: Comm, array: NDArray, found: Values | None, size: int | None) -> None:
    """Give all workers what worker 0 found, or their slices of it where it has a whole size."""
    if found is not None:
        whole = NDArray.view(found)
    else:
        whole = array if size is None else NDArray.empty((size,))
    comm.broadcast(whole)
    begin, end = (0, whole.size) if size is None else comm.bounds(size)[comm.rank]
    if whole is not array:
        array.copy_from(whole[begin:end])


def _read(saved: Saved, sliced: Collection[str]) -> tuple[Carried, dict[str, Values]]:
    """What the files hold: means of all workers' arrays, and whole buffers of their slices."""
    means: dict[str, _Mean] = {}
    slices: dict[str, list[Values]] = {}
    every: list[Json] = []
    for rank in range(saved.workers):
        numbers, held = saved.worker(rank, sliced)
        every.append(numbers)
        for name, values in held.items():
            if name in sliced:
                slices.setdefault(name, []).append(values)
            else:
                means.setdefault(name, _Mean()).add(values)
    found = {name: mean.values for name, mean in means.items()}
    found |= {name: np.concatenate(parts) for name, parts in slices.items()}
    averaged = [name for name, mean in means.items() if mean.total is not None]
    return Carried(every[0], [one["learner"] for one in every], averaged, []), found


class _Mean:
    """The mean of arrays, in float64; the first one itself where all are equal."""

    def __init__(self) -> None:
        self.first: Values = None
        self.total: Values = None
        self.count = 0

    def add(self, values: Values) -> None:
        if self.count and self.total is None and not np.array_equal(self.first, values):
            self.total = self.first.astype(np.float64) * self.count
        if self.total is not None:
            self.total += values
        elif not self.count:
            self.first = values
        self.count += 1

    @property
    def values(self) -> Values:
        return self.first if self.total is None else (self.total / self.count).astype(np.float32)
