"""Keeping: what a run's snapshots contain, how they are written, and how a run goes on from one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sparknet.comm.codecs import MEAN_ERRORS, OWN_ERRORS, of_parts
from sparknet.errors import Diverged, FileError
from sparknet.native import NDArray
from sparknet.training import snapshot
from sparknet.training.regroup import regroup
from sparknet.training.tally import Tally

if TYPE_CHECKING:
    from sparknet.training.rounds import Rounds

Json = dict[str, Any]

_BEST, _MODEL = "best weights", "model"


def resume(rounds: Rounds, round: int) -> None:
    assert rounds.hooks.store is not None
    store = rounds.hooks.store
    run = _run(rounds)
    if rounds.hooks.own:
        run.pop("data", None)
    found = snapshot.Saved(store, round)
    found.check(run)
    rounds.begun_with = found.begun_with
    if found.workers == rounds.comm.size:
        saved = found.load(rounds.comm.rank, _arrays(rounds), _sliced(rounds), (_BEST, _MODEL))
        rounds.lost = rounds.learner.restore(saved["learner"])
        _restore(rounds, saved)
    else:
        _go_on_with_others(rounds, found)
    rounds.saved = round


def _restore(rounds: Rounds, saved: Json) -> None:
    for name, value in saved["strategy"].items():
        setattr(rounds.state, name, value)
    rounds.tally = Tally(**saved["tally"])
    if rounds.keeps_best and not saved.get("keeps_best"):
        rounds.tally.forget_best()


def _go_on_with_others(rounds: Rounds, found: snapshot.Saved) -> None:
    """Go on from a snapshot of another number of workers."""
    comm, learner, alone = rounds.comm, rounds.learner, (_BEST, _MODEL)
    parts = rounds.strategy.parts
    optional = (*alone, *of_parts(OWN_ERRORS, parts), *of_parts(MEAN_ERRORS, parts))
    carried = regroup(found, comm, _arrays(rounds), _sliced(rounds), optional, alone)
    _restore(rounds, carried.numbers)
    mine = carried.learner_of(comm.rank, learner.state())
    samples, records = rounds.tally.total_samples, rounds.plan.records
    if rounds.hooks.shares or carried.numbers.get("shares"):
        mine["cursor"] = {"share": [samples, records]}
    rounds.lost = ". ".join(filter(None, [carried.told(comm.size), learner.restore(mine)]))
    rounds.strategy.regroup(learner, comm, rounds.state, found.workers)


def _arrays(rounds: Rounds) -> dict[str, NDArray]:
    """All buffers of a snapshot."""
    best = {} if rounds.best is None else {_BEST: rounds.best}
    return {**changing(rounds), **best}


def changing(rounds: Rounds) -> dict[str, NDArray]:
    """The buffers that rounds change."""
    learner = rounds.learner
    begin, end = 0, learner.weights.size
    if rounds.strategy.slices_histories:
        begin, end = rounds.comm.bounds(end)[rounds.comm.rank]
    histories = {
        f"history {number}": one[begin:end] for number, one in enumerate(learner.histories)
    }
    mine = {f"strategy {name}": one for name, one in rounds.state.arrays().items()}
    extras = rounds.strategy.extras(learner, rounds.comm)
    return {"weights": learner.weights, **histories, **mine, **extras}


def _sliced(rounds: Rounds) -> list[str]:
    """The names of the arrays of which each worker has a slice."""
    histories = [f"history {number}" for number in range(len(rounds.learner.histories))]
    errors = of_parts(MEAN_ERRORS, rounds.strategy.parts)
    return [*errors, *(histories if rounds.strategy.slices_histories else ())]


def _numbers(rounds: Rounds) -> Json:
    """All other state of a snapshot."""
    return {
        "learner": rounds.learner.state(),
        "strategy": rounds.state.numbers(),
        "tally": asdict(rounds.tally),
        "keeps_best": rounds.keeps_best,
        "shares": rounds.hooks.shares,
    }


def _run(rounds: Rounds) -> Json:
    """What must be equal in a snapshot to resume it."""
    return {
        "strategy": rounds.strategy.settings(),
        "weights": rounds.learner.weights.size,
        "records": rounds.plan.records,
        "batch_size": rounds.plan.batch_size,
        **rounds.hooks.identity,
    }


def save(rounds: Rounds) -> None:
    store = rounds.hooks.store
    if store is None or rounds.saved == rounds.state.round:
        return
    check_weights(rounds)
    begun, before = rounds.comm.clock(), rounds.comm.traffic.sent
    rounds.tally.total_seconds = begun - rounds.begun
    round, arrays = rounds.state.round, _arrays(rounds)
    numbers = {**_numbers(rounds), "model": _modelled(rounds, arrays)}
    run, layout = {**_run(rounds), "workers": rounds.begun_with}, rounds.hooks.layout
    done = snapshot.save(store, rounds.comm, round, run, arrays, numbers, layout)
    if isinstance(done, snapshot.Unsaved):
        _go_without(rounds, done, rounds.comm.clock() - begun)
        return
    rounds.saved = done.round
    if rounds.comm.rank == 0 and (fault := snapshot.prune(store, rounds.plan.keep)):
        rounds.say("note", text=f"old snapshots stay for now: {fault}")
    sent = rounds.sent_since(before)
    rounds.tally.total_bytes_saving += sent
    spent = rounds.comm.clock() - begun
    said = {"path": done.path, "bytes": done.bytes, "bytes_sent": sent}
    rounds.say("snapshot", **said, seconds=spent)


def _modelled(rounds: Rounds, arrays: dict[str, NDArray]) -> str:
    """The name of the array that training would return now; it is added if it is missing."""
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


def _go_without(rounds: Rounds, failed: snapshot.Unsaved, seconds: float) -> None:
    """Report a snapshot that could not be written; the next one is the next attempt."""
    if rounds.plan.snapshots_needed:
        raise FileError(failed.path, f"worker {failed.worker} could not write: {failed.error}")
    rounds.say("unsaved", **asdict(failed), seconds=seconds)


def check_weights(rounds: Rounds) -> None:
    """Raise Diverged if weights are not finite."""
    broken = rounds.comm.gather(not rounds.learner.weights.is_finite())
    if any(broken):
        fault = f"worker {broken.index(True)} has weights that are not finite"
        raise Diverged(rounds.where(fault))
