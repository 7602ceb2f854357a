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

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sparknet.comm.rpc import Line
from sparknet.errors import PeerLost
from sparknet.training.driver.rendezvous import Json, Loss, Standstill, is_empty, waits
from sparknet.training.driver.stragglers import Arrivals, Behind
from sparknet.training.events import Event

_LEFT_BEHIND = "it was left behind"
_AWAY = 60.0
"""Seconds for which a worker stays away that was left behind twice, then thrice as many."""


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


@dataclass
class _Present:
    """What the driver knows of one worker that is there."""

    worker: int
    where: str
    rank: int | None = None
    """Its rank in the generation; None if it is not part of one yet."""
    ready: bool = False
    after: int = 0
    """The generation after which it is ready for the next one."""
    leaves: bool = False
    """Whether it was told to leave after its round."""
    left: bool = False
    """Whether it does, with its work handed in."""
    said: Any = None
    doing: str = ""
    moved: Any = None


class Membership:
    """The driver's side, in place of a `Rendezvous`; a worker is known by its line.

    ``begin`` is called when a generation begins; all its workers get what it returns.
    """

    def __init__(
        self,
        elastic: Elastic,
        begin: Callable[[], Json],
        say: Callable[[Event], None],
        is_over: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._elastic, self._begin, self._say = elastic, begin, say
        self.least = elastic.least
        self._is_over, self._clock = is_over, clock
        self._members: dict[Line, _Present] = {}
        self._refused: dict[Line, Loss] = {}
        self._known: set[int] = set()
        self._number = 0
        self._met: Json = {}
        self._ended: float | None = clock()
        """When the last generation ended; None while one is at work."""
        self._loss: Loss | None = None
        """What ended the last generation; None if it ended to take in others."""
        self._last_loss: Loss | None = None
        self._gone: list[str] = []
        self._first_ready: float | None = None
        self._moved = clock()
        self._events: list[Event] = []
        self._arrivals: Arrivals | None = None
        if elastic.behind is not None:
            self._arrivals = Arrivals(elastic.behind, elastic.late)
        self._behind: Counter[int] = Counter()
        """How often a worker was left behind."""
        self._barred: dict[int, float] = {}
        """Until when a worker may not come back."""
        self._lock = threading.Condition(threading.Lock())

    # -- what the driver asks ------------------------------------------------------------

    @property
    def present(self) -> int:
        """How many are there."""
        with self._lock:
            return len(self._members)

    @property
    def begun(self) -> bool:
        """Whether there was a generation."""
        return self._number > 0

    @property
    def lacks(self) -> bool:
        """Whether there are fewer workers than needed."""
        return self.present < self._elastic.least

    @property
    def lost(self) -> PeerLost | None:
        """The last loss, if there are fewer workers than needed."""
        with self._lock:
            if self._last_loss is None or len(self._members) >= self._elastic.least:
                return None
            return PeerLost(*self._last_loss)

    def has_entered(self, worker: int) -> bool:
        """Return whether a worker ever called."""
        with self._lock:
            return worker in self._known

    def has_newcomers(self) -> bool:
        """Whether a generation is to end after the round: somebody waits to come or to leave."""
        with self._lock:
            there = self._members.values()
            comes = any(one.ready and one.rank is None for one in there)
            return comes or any(self._may_leave(one) for one in there)

    def send_away(self, workers: Collection[int]) -> None:
        """Have workers leave after their round."""
        with self._lock:
            for one in self._members.values():
                one.leaves = one.leaves or one.worker in workers

    def leaves(self, line: Line, wish: bool, now: bool) -> bool:
        """Return whether a worker leaves after its round; ``now`` it does, and is no loss."""
        with self._lock:
            one = self._members.get(line)
            if one is None:
                return False
            one.leaves = one.leaves or wish
            one.left = now and self._may_leave(one)
            return self._may_leave(one)

    def _may_leave(self, one: _Present) -> bool:
        """Whether a worker was told to leave, and another one of its generation stays."""
        stays = (other.rank is not None and not other.leaves for other in self._members.values())
        return one.leaves and one.rank is not None and any(stays)

    def gone(self) -> list[str]:
        """Return the hosts and processes of workers that were lost since the last call."""
        with self._lock:
            losses, self._gone = self._gone, []
            return losses

    def standstill(self, seconds: float) -> Standstill | None:
        """Return what the workers do, if there are some and none of them got on for so long."""
        with self._lock:
            still = self._clock() - self._moved
            if not self._members or still < seconds:
                return None
            return still, {str(one.worker): one.doing for one in self._members.values()}

    # -- what workers say ----------------------------------------------------------------

    def hear(self, line: Line, call: Json) -> Json:
        """Answer a worker's heartbeat: who is lost, or that a generation begins with it.

        It may wait for that, for as long as it says.
        """
        with self._lock:
            answer = self._answer(line, call)
        self._tell()
        if is_empty(answer) and (seconds := waits(call)):
            with self._lock:
                self._lock.wait_for(lambda: self._has_news(line), seconds)
                answer = self._answer(line, call)
            self._tell()
        return answer

    def miss(self, line: Line, what: str) -> Loss | None:
        """Handle the silence of a worker."""
        return self._without(line, what)

    def leave(self, line: Line) -> None:
        """Handle the end of a line."""
        with self._lock:
            self._refused.pop(line, None)
        with suppress(OSError):  # the listener failed
            self._without(line, "its process ended")

    def fail(self, line: Line, message: str) -> None:
        """Handle a worker's failure."""
        self._without(line, f"it failed: {message}")

    # -- who is left behind --------------------------------------------------------------

    def arrive(self, line: Line, round: int, seconds: float) -> None:
        """Handle a worker's word that it has trained a round, in so many seconds."""
        with self._lock:
            one, now = self._members.get(line), self._clock()
            if self._arrivals is None or one is None:
                return
            for late in self._arrivals.arrive(one.worker, round, seconds, now):
                for other in self._members.values():
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
            lines = {line: one for line, one in self._members.items() if one.worker in late}
            apart = [line for line, one in lines.items() if self._is_apart(one)]
            for line in apart[:1]:  # the next one when a generation has begun without it
                self._leave_behind(lines[line], late[lines[line].worker])
                self._refused[line] = (lines[line].worker, lines[line].where, _LEFT_BEHIND)
        for line in apart[:1]:
            self._without(line, _LEFT_BEHIND)
        self._tell()

    def _is_apart(self, one: _Present) -> bool:
        """Return whether the others can go on without a worker, which has not met them again."""
        return not (one.ready and one.after >= self._number) and self._can_spare(one)

    def _can_spare(self, one: _Present) -> bool:
        """Return whether enough others stay in its generation."""
        staying = [other.rank is not None and not other.leaves for other in self._members.values()]
        return one.rank is not None and not one.leaves and sum(staying) > self._elastic.least

    def _leave_behind(self, one: _Present, found: Behind) -> None:
        """Leave a worker behind; its back-off before a return grows each time."""
        times = self._behind[one.worker]
        self._behind[one.worker] = times + 1
        self._barred[one.worker] = self._clock() + _AWAY * (2**times - 1)
        figures = {"seconds": found.seconds, "median": found.median, "factor": self._elastic.behind}
        self._note("behind", worker=one.worker, where=one.where, **figures)

    # -- how generations end and begin ----------------------------------------------------

    def _answer(self, line: Line, call: Json) -> Json:
        if line not in self._members and line not in self._refused:
            self._enter(line, call)
        if line in self._refused:
            return {"lost": self._refused[line], "met": None}
        one = self._members[line]
        one.ready, one.said = bool(call["ready"]), call["said"]
        one.after = int(call.get("after", 0))
        one.doing = str(call.get("doing", ""))
        if call.get("moved") != one.moved:
            one.moved, self._moved = call.get("moved"), self._clock()
        if one.ready and one.rank is not None and one.after == self._number:
            self._end(_loss(call.get("why")))
        self._form()
        if one.rank is None or one.after >= self._number:
            is_over = one.rank is not None and self._ended is not None and not one.ready
            return {"lost": self._loss if is_over else None, "met": None}
        return {"lost": None, "met": {**self._met, "rank": one.rank}}

    def _has_news(self, line: Line) -> bool:
        """Return whether one that is ready for the next generation is part of it, or lost."""
        one = self._members.get(line)
        return one is None or (one.rank is not None and one.after < self._number)

    def _enter(self, line: Line, call: Json) -> None:
        one = _Present(line.rank, str(call["where"]))
        if self._is_over():
            self._refused[line] = (one.worker, one.where, "training is over")
        elif any(other.worker == one.worker for other in self._members.values()):
            self._refused[line] = (one.worker, one.where, "another process has its place")
        elif self._clock() < self._barred.get(one.worker, 0.0):
            self._refused[line] = (one.worker, one.where, _LEFT_BEHIND)
        else:
            if not self._known:
                self._ended = self._clock()
            self._members[line] = one
            self._known.add(one.worker)
            self._moved = self._clock()

    def _without(self, line: Line, what: str) -> Loss | None:
        with self._lock:
            one = self._members.pop(line, None)
            self._lock.notify_all()
            if one is None or self._is_over():
                return None
            loss = one.worker, one.where, what
            self._gone.append(one.where)
            self._last_loss = loss
            who = {"worker": one.worker, "where": one.where}
            if one.left:
                self._note("left", **who)
            else:
                self._note("lost", **who, message=what)
            if one.rank is not None:
                self._end(None if one.left else loss)
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
        there = [*self._members.values()]
        staying = [one for one in there if one.rank is not None]
        if any(not one.ready or one.after < self._number for one in staying):
            return
        ready = [one for one in there if one.ready]
        if len(ready) < self._elastic.least or not self._has_waited(len(ready)):
            return
        seconds, fresh = self._clock() - self._ended, [one for one in ready if one.rank is None]
        ready.sort(key=lambda one: (one.rank is None, one.rank, one.worker))
        for rank, one in enumerate(ready):
            one.rank = rank
        places = [one.worker for one in ready]
        addresses = [one.said for one in ready]
        self._met = {"workers": addresses, "places": places, **self._begin()}
        self._number = int(self._met["attempt"])
        why = None if self._loss is None else f"worker {self._loss[0]}: {self._loss[2]}"
        self._ended = self._loss = None
        self._lock.notify_all()
        if self._arrivals is not None:
            self._arrivals.meet(places, self._clock())
        for one in fresh if self._number > 1 else ():
            self._note("joined", worker=one.worker, where=one.where)
        self._note("generation", workers=len(ready), seconds=seconds, message=why)

    def _has_waited(self, ready: int) -> bool:
        """Return whether no more are waited for."""
        if self._first_ready is None:
            self._first_ready = self._clock()
        if self.begun or ready == self._elastic.most:
            return True
        return self._clock() - self._first_ready >= self._elastic.wait

    def _note(self, kind: str, **fields: Any) -> None:
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
