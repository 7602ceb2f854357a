"""Membership: the workers of a run that goes on when some are lost and others come.

The workers between two changes are a generation.  When one is lost the others meet again at the
driver, which gives them the next generation's number, their ranks and each other's addresses.  A
worker that comes later waits until the end of a round.  Events tell of it:

``lost``
    worker, where (its host and process), message (what happened to it), generation (its number)

``left``
    worker, where, generation (the last one that it was part of): it was told to, as its machine is
    taken away, and has handed in its work

``behind``
    worker, where, seconds (of its round so far), median (of the others' rounds), factor (the
    setting leave_behind): it is left behind; ``lost`` follows, or ``left`` where it had just
    ended its round

``joined``
    worker, where, generation (the first one that it is part of)

``generation``
    generation (its number), workers (how many it has), seconds (since the last one ended; of the
    first one, since the first worker called), message (what ended the last one, or None)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sparknet.comm.rpc import Line
from sparknet.errors import PeerLost
from sparknet.training.driver.rendezvous import Json, Loss, Meeting, WorkerState
from sparknet.training.driver.stragglers import Arrivals, BackOff, Behind
from sparknet.training.events import Event
from sparknet.training.settings.training import RunSettings
from sparknet.training.strategies import make_strategy

_LEFT_BEHIND, _OVER = "it was left behind", "training is over"


@dataclass(frozen=True)
class Elastic:
    """How many workers a run may have."""

    most: int
    least: int
    wait: float
    """Seconds that a run which could begin waits for more workers."""
    behind: float | None = None
    """How many times as long as the others a worker may take for a round; None is no limit."""
    late: float = 0.0
    """Seconds before which nobody is late in the middle of a round."""
    goes_on: bool = True
    """Whether those that are left go on; else all start again from the newest snapshot."""

    @classmethod
    def of(cls, given: RunSettings) -> Elastic | None:
        """Return what a run's settings say; None if its members do not change."""
        if given.min_workers is None:
            return None
        behind, late = given.leave_behind, given.deadline / 4
        goes_on = make_strategy(given.strategy).goes_on
        return cls(given.workers, given.min_workers, given.start_wait, behind, late, goes_on)


@dataclass
class _Member(WorkerState):
    """What the driver knows of one worker that is there."""

    rank: int | None = None
    """Its rank in the generation; None if it is not part of one yet."""
    after: int = 0
    """The generation after which it is ready for the next one."""
    leaves: bool = False
    """Whether it was told to leave after its round."""
    is_leaving: bool = False
    """Whether it does, with its work handed in."""


class Membership(Meeting[_Member]):
    """The meetings of a run whose members change, one before each generation."""

    def __init__(
        self,
        elastic: Elastic,
        begin: Callable[[], Json],
        say: Callable[[Event], None],
        is_over: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(begin, clock)
        self.elastic, self._say, self._is_over = elastic, say, is_over
        self._number = 0
        self._met: Json = {}
        self._ended: float | None = clock()
        """When the last generation ended; None while one is at work."""
        self._loss: Loss | None = None
        """What ended the last generation; None if it ended to take in others."""
        self._last_loss: Loss | None = None
        self._gone: list[str] = []
        self._first_ready: float | None = None
        self._events: list[Event] = []
        self._arrivals: Arrivals | None = None
        if elastic.behind is not None:
            self._arrivals = Arrivals(elastic.behind, elastic.late)
        self._back_off = BackOff()

    # -- what the driver asks ------------------------------------------------------------

    @property
    def lacks(self) -> bool:
        """Whether there are fewer workers than needed."""
        return self.present < self.elastic.least

    @property
    def lost(self) -> PeerLost | None:
        """The last loss, if there are fewer workers than needed."""
        with self._lock:
            if self._last_loss is None or len(self._here) >= self.elastic.least:
                return None
            return PeerLost(*self._last_loss)

    def has_newcomers(self) -> bool:
        """Return whether a generation ends after the round: a worker waits to come or to leave."""
        with self._lock:
            there = self._here.values()
            comes = any(one.ready and one.rank is None for one in there)
            return comes or any(self._may_leave(one) for one in there)

    def send_away(self, workers: Collection[int]) -> None:
        """Have workers leave after their round."""
        with self._lock:
            for one in self._here.values():
                one.leaves = one.leaves or one.worker in workers

    def leaves(self, line: Line, wish: bool, now: bool) -> bool:
        """Return whether a worker leaves after its round; ``now`` it does, and is no loss."""
        with self._lock:
            one = self._here.get(line)
            if one is None:
                return False
            one.leaves = one.leaves or wish
            one.is_leaving = now and self._may_leave(one)
            return self._may_leave(one)

    def _may_leave(self, one: _Member) -> bool:
        """Return whether a worker was told to leave, and another one of its generation stays."""
        stays = (other.rank is not None and not other.leaves for other in self._here.values())
        return one.leaves and one.rank is not None and any(stays)

    def gone(self) -> list[str]:
        """Return the hosts and processes of workers that were lost since the last call."""
        with self._lock:
            losses, self._gone = self._gone, []
            return losses

    # -- what workers say ----------------------------------------------------------------

    def miss(self, line: Line, fault: str) -> Loss | None:
        return self._without(line, fault)

    def leave(self, line: Line) -> None:
        with self._lock:
            self._refused.pop(line, None)
        with suppress(OSError):  # the listener failed
            self._without(line, "its process ended")

    def fail(self, line: Line, message: str) -> None:
        self._without(line, f"it failed: {message}")

    # -- who is left behind --------------------------------------------------------------

    def arrive(self, line: Line, round: int, seconds: float) -> None:
        """Handle a worker's word that it has trained a round, in so many seconds."""
        with self._lock:
            one, now = self._here.get(line), self._clock()
            if self._arrivals is None or one is None:
                return
            for late in self._arrivals.arrive(one.worker, round, seconds, now):
                for other in self._here.values():
                    if other.worker == late.worker and self._can_spare(other):
                        self._leave_behind(other, late)
                        other.leaves = True
        self._tell()

    def leave_behind(self) -> None:
        """Go on without those for whom the others have waited for too long."""
        if self._arrivals is None:
            return
        with self._lock:
            late = {one.worker: one for one in self._arrivals.late(self._clock())}
            lines = {line: one for line, one in self._here.items() if one.worker in late}
            apart = [line for line, one in lines.items() if self._is_apart(one)]
            for line in apart[:1]:  # the next one when a generation has begun without it
                self._leave_behind(lines[line], late[lines[line].worker])
                self._refused[line] = (lines[line].worker, lines[line].where, _LEFT_BEHIND)
        for line in apart[:1]:
            self._without(line, _LEFT_BEHIND)
        self._tell()

    def _is_apart(self, one: _Member) -> bool:
        """Return whether the others can go on without a worker, which has not met them again."""
        return not (one.ready and one.after >= self._number) and self._can_spare(one)

    def _can_spare(self, one: _Member) -> bool:
        """Return whether enough others stay in its generation."""
        staying = [other.rank is not None and not other.leaves for other in self._here.values()]
        return one.rank is not None and not one.leaves and sum(staying) > self.elastic.least

    def _leave_behind(self, one: _Member, found: Behind) -> None:
        """Leave a worker behind; its back-off before a return grows each time."""
        self._back_off.leave(one.worker, self._clock())
        figures = {"seconds": found.seconds, "median": found.median, "factor": self.elastic.behind}
        self._add("behind", worker=one.worker, where=one.where, **figures)

    # -- how generations end and begin ----------------------------------------------------

    def _answer(self, line: Line, call: Json) -> Json:
        if line not in self._here and line not in self._refused:
            self._admit(line, call)
        if line in self._refused:
            return {"lost": self._refused[line], "met": None}
        one = self._here[line]
        self._note(one, call)
        one.after = int(call.get("after", 0))
        if one.ready and one.rank is not None and one.after == self._number:
            self._end(_loss(call.get("why")))
        self._form()
        if one.rank is None and self._is_over():
            return {"lost": (one.worker, one.where, _OVER), "met": None}
        if one.rank is None or one.after >= self._number:
            is_over = one.rank is not None and self._ended is not None and not one.ready
            return {"lost": self._loss if is_over else None, "met": None}
        return {"lost": None, "met": {**self._met, "rank": one.rank}}

    def _has_news(self, line: Line) -> bool:
        """Return whether one that is ready for the next generation is part of it, or lost."""
        one = self._here.get(line)
        return one is None or (one.rank is not None and one.after < self._number)

    def _admit(self, line: Line, call: Json) -> None:
        one = _Member(line.rank, str(call["where"]))
        if self._is_over():
            self._refused[line] = (one.worker, one.where, _OVER)
        elif any(other.worker == one.worker for other in self._here.values()):
            self._refused[line] = (one.worker, one.where, "another process has its place")
        elif self._back_off.bars(one.worker, self._clock()):
            self._refused[line] = (one.worker, one.where, _LEFT_BEHIND)
        else:
            if not self._known:
                self._ended = self._clock()
            self._enter(line, one)

    def _without(self, line: Line, what: str) -> Loss | None:
        with self._lock:
            one = self._here.pop(line, None)
            self._lock.notify_all()
            if one is None or self._is_over():
                return None
            loss = one.worker, one.where, what
            self._gone.append(one.where)
            self._last_loss = loss
            who = {"worker": one.worker, "where": one.where}
            if one.is_leaving:
                self._add("left", **who)
            else:
                self._add("lost", **who, message=what)
            if one.rank is not None:
                self._end(None if one.is_leaving else loss)
            self._form()
        self._tell()
        return loss

    def _end(self, loss: Loss | None) -> None:
        if self._ended is None:
            self._ended, self._loss = self._clock(), loss

    def _form(self) -> None:
        """Begin the next generation, if all are there of whom that is known."""
        if self._ended is None or self._is_over():
            return
        there = [*self._here.values()]
        staying = [one for one in there if one.rank is not None]
        if any(not one.ready or one.after < self._number for one in staying):
            return
        ready = [one for one in there if one.ready]
        if len(ready) < self.elastic.least or not self._has_waited(len(ready)):
            return
        seconds, fresh = self._clock() - self._ended, [one for one in ready if one.rank is None]
        ready.sort(key=lambda one: (one.rank is None, one.rank, one.worker))
        for rank, one in enumerate(ready):
            one.rank = rank
        places = [one.worker for one in ready]
        addresses = [one.address for one in ready]
        self._met = {"workers": addresses, "places": places, **self._begin()}
        self._number = int(self._met["attempt"])
        why = None if self._loss is None else f"worker {self._loss[0]}: {self._loss[2]}"
        self._ended = self._loss = None
        self._lock.notify_all()
        if self._arrivals is not None:
            self._arrivals.meet(places, self._clock())
        for one in fresh if self._number > 1 else ():
            self._add("joined", worker=one.worker, where=one.where)
        self._add("generation", workers=len(ready), seconds=seconds, message=why)

    def _has_waited(self, ready: int) -> bool:
        """Return whether no more are waited for."""
        if self._first_ready is None:
            self._first_ready = self._clock()
        if self._number or ready == self.elastic.most:
            return True
        return self._clock() - self._first_ready >= self.elastic.wait

    def _add(self, kind: str, **fields: Any) -> None:
        event = {"event": kind, "time": time.time(), "generation": self._number}
        self._events.append({**event, **fields})

    def _tell(self) -> None:
        """Pass on the events, outside the lock: a listener may take long."""
        while True:
            with self._lock:
                if not self._events:
                    return
                event = self._events.pop(0)
            self._say(event)


def _loss(why: Any) -> Loss | None:
    return None if why is None else (int(why[0]), str(why[1]), str(why[2]))
