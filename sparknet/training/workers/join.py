"""Joining: what workers do when the next generation begins, old ones and new ones.

They tell each other how far they are.  Of a round that none of them has finished each still has
what it trained, and synchronises that again; whoever has missed the end of a round is told.
Newcomers get weights, the strategy's state and the clock from the one that is farthest.
"""

from __future__ import annotations

from dataclasses import asdict, astuple, replace
from typing import Any

from sparknet.comm.codecs import MEAN_ERRORS, OWN_ERRORS, of_parts
from sparknet.comm.collectives import Comm
from sparknet.comm.grid import bounds
from sparknet.native import NDArray
from sparknet.training.schedule import Hooks, Tally
from sparknet.training.workers.rounds import Rounds
from sparknet.training.workers.state import Milestone

Json = dict[str, Any]


def join(rounds: Rounds, comm: Comm, hooks: Hooks, heard: int) -> None:
    """Go on in another generation; ``heard`` is the last round of which the driver has heard.

    It may fail in the middle, when another worker is lost, and is called again then.  So what a
    worker says of itself changes at once, when it knows all that it needs.
    """
    rounds.got_on = False
    reports = comm.gather(_whereabouts(rounds, hooks))
    there = [one for one in reports if one is not None]
    far = max(there, key=lambda one: (one["place"], one["validated"]))
    root, place = reports.index(far), Milestone(*far["place"])
    fresh = [rank for rank, one in enumerate(reports) if one is None]
    if comm.rank == root:
        _come_back(rounds, comm, place)
    farthest = comm.gather(_progress_of(rounds) if comm.rank == root else None)[root]
    is_new = rounds.place is None
    if is_new:
        _enter(rounds, comm, farthest)
    else:
        _come_back(rounds, comm, place)
        rounds.place = place
    rounds.tally = Tally(**farthest["tally"])
    rounds.interrupted, rounds.last = farthest["interrupted"], farthest["last"]
    rounds.saved = max((one["saved"] for one in there if one["saved"] is not None), default=None)
    _deal(rounds, comm, hooks, reports, place.dealt, farthest["cursors"])
    if not is_new:
        rounds.place = replace(place, dealt=place.dealt + 1)
    _hand_over(rounds, comm, root, fresh)
    _carry_errors(rounds, comm, is_new)
    rounds.comm, rounds.hooks, rounds.parts = comm, hooks, False
    rounds.counted = 0
    rounds.place = replace(place, dealt=place.dealt + 1)
    rounds.tally.total_bytes_starting += rounds.sent_since(0)
    if rounds.last and rounds.state.round > heard:
        rounds.say("round", **rounds.last)


def _whereabouts(rounds: Rounds, hooks: Hooks) -> Json | None:
    """Return how far this worker is; None if it is new."""
    if rounds.place is None:
        return None
    return {
        "place": astuple(rounds.place),
        "validated": rounds.tally.validated,
        "saved": rounds.saved,
        "rank": rounds.rank_dealt,
        "cursor": hooks.records and hooks.records.cursor,
    }


def _come_back(rounds: Rounds, comm: Comm, far: Milestone) -> None:
    """Forget the synchronisation that was under way, unless another worker knows that it ended."""
    place, redo = rounds.place, rounds.redo
    assert place is not None
    assert redo is not None
    rounds.strategy.part(rounds.state, whole=False)
    if place.rounds == far.rounds:
        redo.restore()
        if redo.is_open:
            rounds.tally.steps_over = redo.over
        for name, value in redo.numbers.items() if redo.is_open else ():
            setattr(rounds.state, name, value)
    else:
        redo.end()
    rounds.strategy.rejoin(rounds.learner, comm, rounds.state, rounds.comm.size)


def _progress_of(rounds: Rounds) -> Json:
    """Return what this worker, which is the farthest, tells the others."""
    learner = rounds.learner.state()
    if rounds.redo is not None and rounds.redo.is_open:
        learner["iteration"] = rounds.redo.before
    return {
        "tally": asdict(rounds.tally),
        "seconds": rounds.comm.clock() - rounds.begun,
        "begun_with": rounds.begun_with,
        "plan": {"steps": rounds.plan.steps, "records": rounds.plan.records},
        "learner": learner,
        "strategy": rounds.state.numbers(),
        "interrupted": rounds.interrupted,
        "last": rounds.last,
        "cursors": rounds.cursors,
    }


def _enter(rounds: Rounds, comm: Comm, given: Json) -> None:
    """Take over the state of a run that is under way, without its arrays."""
    rounds.state = rounds.strategy.start(rounds.learner, comm)
    for name, value in given["strategy"].items():
        setattr(rounds.state, name, value)
    rounds.plan = replace(rounds.plan, **given["plan"])
    rounds.begun_with = given["begun_with"]
    rounds.begun = comm.clock() - given["seconds"]
    rounds.make_redo()
    own, state = rounds.learner.state(), given["learner"]
    if isinstance(own.get("random"), list) and isinstance(state.get("random"), list):
        state["random"] = [own["random"][0], *state["random"][1:]]
    rounds.learner.restore({**state, "cursor": own["cursor"]})


def _hand_over(rounds: Rounds, comm: Comm, root: int, fresh: list[int]) -> None:
    """Give newcomers the arrays of the farthest worker, and all the best weights so far."""
    learner, state = rounds.learner, rounds.state
    weights = learner.weights
    if comm.rank == root:
        weights = rounds.strategy.begins_with(learner, state)
    if fresh:
        for array in [weights, *learner.histories, *state.arrays().values()]:
            takes_part = comm.rank == root or comm.rank in fresh
            comm.broadcast(array if takes_part else NDArray.empty((array.size,)), root)
    if rounds.best is not None:
        best = rounds.best.copy()
        comm.broadcast(best, root)
        rounds.best.copy_from(best)


def _carry_errors(rounds: Rounds, comm: Comm, is_new: bool) -> None:
    """Take a codec's rounding errors over to the new comm; those of a lost worker are lost."""
    learner, new = rounds.learner, rounds.strategy.extras(rounds.learner, comm)
    old = {} if is_new else rounds.strategy.extras(learner, rounds.comm)
    parts = rounds.strategy.parts
    for name in of_parts(OWN_ERRORS, parts):
        if name in new and name in old:
            new[name].copy_from(old[name])
    for name, (first, last) in zip(
        of_parts(MEAN_ERRORS, parts), bounds(learner.weights.size, parts), strict=True
    ):
        if name not in new:
            continue
        whole = NDArray.zeros((last - first,))
        if name in old:
            begin, end = rounds.comm.bounds(whole.size)[rounds.comm.rank]
            whole[begin:end].copy_from(old[name])
        comm.mean(whole)
        begin, end = comm.bounds(whole.size)[comm.rank]
        new[name].copy_from(whole[begin:end].scale(comm.size))
    if rounds.redo is not None:
        rounds.redo.renew(new)


def _deal(
    rounds: Rounds, comm: Comm, hooks: Hooks, said: list[Json | None], dealt: int, known: list[Json]
) -> None:
    """Deal the records anew, behind what those that are left have taken.

    What a lost worker took in a round that it did not finish counts as not taken.
    """
    rounds.rank_dealt = comm.rank
    if hooks.records is None:
        return
    cursors = list(known)
    for one in said:
        if one is not None and one["place"][-1] == dealt:
            cursors[one["rank"]] = one["cursor"]
    hooks.records.deal(comm.rank, comm.size, {"of": cursors})
    rounds.cursors = [hooks.records.cursor] * comm.size
    if rounds.redo is not None and rounds.redo.learner:
        rounds.redo.learner["cursor"] = hooks.records.cursor
