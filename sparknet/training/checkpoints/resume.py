"""Resume: what a run's snapshots contain, and how a run goes on from one."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sparknet.comm.codecs import MEAN_ERRORS, OWN_ERRORS, of_parts
from sparknet.comm.collectives import Comm
from sparknet.errors import Diverged, FileError
from sparknet.native import NDArray
from sparknet.training.checkpoints import snapshot
from sparknet.training.checkpoints.snapshot import Saved
from sparknet.training.checkpoints.store import Values
from sparknet.training.schedule import Tally
from sparknet.training.workers.state import RunState

Json = dict[str, Any]

_BEST, _MODEL = "best weights", "model"


def resume(rounds: RunState, round: int) -> None:
    assert rounds.hooks.store is not None
    store = rounds.hooks.store
    run = _run(rounds)
    if rounds.hooks.own:
        run.pop("data", None)
    snapshot_files = snapshot.Saved(store, round)
    snapshot_files.check(run)
    rounds.begun_with = snapshot_files.begun_with
    if snapshot_files.workers == rounds.comm.size:
        saved = snapshot_files.load(
            rounds.comm.rank, arrays_of(rounds), _sliced(rounds), (_BEST, _MODEL)
        )
        rounds.lost = rounds.learner.restore(saved["learner"])
        _restore(rounds, saved)
    else:
        _go_on_with_others(rounds, snapshot_files)
    rounds.saved = round


def restore_numbers(rounds: RunState, saved: Json) -> None:
    """Take over what `numbers_of` returned on this worker, but for its learner."""
    _restore(rounds, saved)
    rounds.begun_with, rounds.saved = saved["begun_with"], saved["saved"]
    rounds.last, rounds.is_doubted = saved["last"], saved["is_doubted"]


def numbers_of(rounds: RunState) -> Json:
    """Return all state beside the arrays, for the same run."""
    rounds.tally.total_seconds = rounds.comm.clock() - rounds.begun
    own = {name: getattr(rounds, name) for name in ("begun_with", "saved", "last", "is_doubted")}
    return {**_numbers(rounds), **own}


def _restore(rounds: RunState, saved: Json) -> None:
    for name, value in saved["strategy"].items():
        setattr(rounds.state, name, value)
    rounds.tally = Tally(**saved["tally"])
    if rounds.keeps_best and not saved.get("keeps_best"):
        rounds.tally.forget_best()


def _go_on_with_others(rounds: RunState, found: snapshot.Saved) -> None:
    """Go on from a snapshot of another number of workers."""
    comm, learner, alone = rounds.comm, rounds.learner, (_BEST, _MODEL)
    parts = rounds.strategy.parts
    optional = (*alone, *of_parts(OWN_ERRORS, parts), *of_parts(MEAN_ERRORS, parts))
    carried = regroup(found, comm, arrays_of(rounds), _sliced(rounds), optional, alone)
    _restore(rounds, carried.numbers)
    mine = carried.learner_of(comm.rank, learner.state())
    samples, records = rounds.tally.total_samples, rounds.plan.records
    if rounds.hooks.shares or carried.numbers.get("shares"):
        mine["cursor"] = {"share": [samples, records]}
    rounds.lost = ". ".join(filter(None, [carried.summary(comm.size), learner.restore(mine)]))
    rounds.strategy.regroup(learner, comm, rounds.state, found.workers)


def arrays_of(rounds: RunState) -> dict[str, NDArray]:
    """Return all buffers of a worker's state."""
    learner = rounds.learner
    begin, end = 0, learner.weights.size
    if rounds.strategy.slices_histories:
        begin, end = rounds.comm.bounds(end)[rounds.comm.rank]
    histories = {
        f"history {number}": one[begin:end] for number, one in enumerate(learner.histories)
    }
    mine = {f"strategy {name}": one for name, one in rounds.state.arrays().items()}
    extras = rounds.strategy.extras(learner, rounds.comm)
    best = {} if rounds.best is None else {_BEST: rounds.best}
    return {"weights": learner.weights, **histories, **mine, **extras, **best}


def _sliced(rounds: RunState) -> list[str]:
    """Return the names of the arrays of which each worker has a slice."""
    histories = [f"history {number}" for number in range(len(rounds.learner.histories))]
    errors = of_parts(MEAN_ERRORS, rounds.strategy.parts)
    return [*errors, *(histories if rounds.strategy.slices_histories else ())]


def _numbers(rounds: RunState) -> Json:
    """Return all other state of a snapshot."""
    return {
        "learner": rounds.learner.state(),
        "strategy": rounds.state.numbers(),
        "tally": asdict(rounds.tally),
        "keeps_best": rounds.keeps_best,
        "shares": rounds.hooks.shares,
    }


def _run(rounds: RunState) -> Json:
    """Return what must be equal in a snapshot to resume it."""
    return {
        "strategy": rounds.strategy.settings(),
        "weights": rounds.learner.weights.size,
        "records": rounds.plan.records,
        "batch_size": rounds.plan.batch_size,
        **rounds.hooks.identity,
    }


def save(rounds: RunState) -> None:
    store = rounds.hooks.store
    if store is None or rounds.saved == rounds.state.round:
        return
    check_weights(rounds)
    start, before = rounds.comm.clock(), rounds.comm.traffic.sent
    rounds.tally.total_seconds = start - rounds.begun
    round, arrays = rounds.state.round, arrays_of(rounds)
    numbers = {**_numbers(rounds), "model": _modelled(rounds, arrays)}
    run, layout = {**_run(rounds), "workers": rounds.begun_with}, rounds.hooks.layout
    done = snapshot.save(store, rounds.comm, round, run, arrays, numbers, layout)
    if isinstance(done, snapshot.Unsaved):
        _go_without(rounds, done, rounds.comm.clock() - start)
        return
    rounds.saved = done.round
    if rounds.comm.rank == 0 and (fault := snapshot.prune(store, rounds.plan.keep)):
        rounds.say("note", text=f"old snapshots stay for now: {fault}")
    nbytes = rounds.sent_since(before)
    rounds.tally.total_bytes_saving += nbytes
    spent = rounds.comm.clock() - start
    figures = {"path": done.path, "bytes": done.bytes, "bytes_sent": nbytes}
    rounds.say("snapshot", **figures, seconds=spent)


def _modelled(rounds: RunState, arrays: dict[str, NDArray]) -> str:
    """Return the name of the array that training would return now; it is added if it is missing."""
    if rounds.keeps_best and rounds.tally.best is not None and rounds.tally.without_best:
        return _BEST
    model = rounds.learner.weights
    if rounds.comm.size > 1:
        model = rounds.strategy.model(rounds.learner, rounds.comm, rounds.state)
    for name, array in arrays.items():
        if array is model:
            return name
    arrays[_MODEL] = model
    return _MODEL


def _go_without(rounds: RunState, failed: snapshot.Unsaved, seconds: float) -> None:
    """Report a snapshot that could not be written; the next one is the next attempt."""
    if rounds.plan.snapshots_needed:
        raise FileError(failed.path, f"worker {failed.worker} could not write: {failed.error}")
    rounds.say("unsaved", **asdict(failed), seconds=seconds)


def check_weights(rounds: RunState) -> None:
    """Raise Diverged if weights are not finite."""
    broken = rounds.comm.gather(not rounds.learner.weights.is_finite())
    if any(broken):
        fault = f"worker {broken.index(True)} has weights that are not finite"
        raise Diverged(rounds.where(fault))


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
        """Return the state of a worker's learner, whose own one is ``own`` before.

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

    def summary(self, workers: int) -> str:
        """Return what became of it, in a sentence."""
        before = len(self.learners)
        text = f"the snapshot is of {before} workers, and {workers} go on from it"
        if self.averaged:
            text += f"; each has the mean of their {', '.join(self.averaged)}"
        if self.dropped:
            text += f"; the {', '.join(self.dropped)} are of no use to them and are dropped"
        return text


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
    message: Json | None = None
    own_arrays: dict[str, Values] = {}
    every = comm.gather({name: arrays[name].size for name in sliced if name in arrays})
    wholes = {name: sum(one[name] for one in every) for name in every[0]}
    if comm.rank == 0:
        carried, own_arrays = _read(saved, sliced)
        for name in optional:
            if name in own_arrays and name not in arrays:
                del own_arrays[name]
                carried.dropped.extend([name] * (name not in alone))
        saved.check_sizes(0, own_arrays, _sizes(arrays, wholes, {*optional}.difference(own_arrays)))
        for name in {*alone}.intersection(own_arrays):
            arrays[name].copy_from(NDArray.view(own_arrays.pop(name)))
        message = {"carried": vars(carried), "names": [*own_arrays]}
    answer = comm.gather(message)[0]
    for name in answer["names"]:
        _share(comm, arrays[name], own_arrays.get(name), wholes.get(name))
    return Carried(**answer["carried"])


def _sizes(
    arrays: Mapping[str, NDArray], wholes: Mapping[str, int], missing: Collection[str]
) -> dict[str, int]:
    """Return the lengths that a snapshot's arrays must have as a whole."""
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
    """Return the files' contents: means of all workers' arrays, and buffers joined from slices."""
    means: dict[str, _Mean] = {}
    slices: dict[str, list[Values]] = {}
    every: list[Json] = []
    for rank in range(saved.workers):
        numbers, arrays = saved.worker(rank, sliced)
        every.append(numbers)
        for name, values in arrays.items():
            if name in sliced:
                slices.setdefault(name, []).append(values)
            else:
                means.setdefault(name, _Mean()).add(values)
    merged = {name: mean.values for name, mean in means.items()}
    merged |= {name: np.concatenate(parts) for name, parts in slices.items()}
    averaged = [name for name, mean in means.items() if mean.total is not None]
    return Carried(every[0], [one["learner"] for one in every], averaged, []), merged


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
