"""Membership: the hosts of a run that goes on when some are lost and others come.

A host asks the driver which workers it carries.  The workers between two changes are a generation.
When a host is lost, others carry its workers, and all meet again at the driver, which gives them
the next generation's number and each other's addresses.  A host that comes later waits until the
end of a round.  Events tell of it:

``lost``
    worker, where (its host and process), message (what happened to it), generation (its number)

``left``
    worker, where, generation (the last one that it was part of): its host leaves, as its machine is
    taken away, and others carry its workers

``behind``
    worker, where, seconds (of its round so far), median (of the others' rounds), factor (the
    setting leave_behind): its host is left behind; ``lost`` follows, or ``left`` where it had just
    ended its round

``joined``
    worker, where, generation (the first one in which this host carries it)

``generation``
    generation (its number), workers (how many there are), hosts (how many carry them), seconds
    (since the last one ended; of the first one, since the first host called), message (what ended
    the last one, or None)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sparknet.comm.rpc import Line
from sparknet.errors import PeerLost
from sparknet.training.driver.placement import HostState, Placement
from sparknet.training.driver.rendezvous import HOLD, Json, Loss, Meeting, WorkerState
from sparknet.training.driver.stragglers import Arrivals, BackOff, Behind
from sparknet.training.events import Event
from sparknet.training.settings.training import RunSettings

_LEFT_BEHIND, _OVER = "it was left behind", "training is over"
_ELSEWHERE = "another host carries it"


@dataclass(frozen=True)
class Elastic:
    """How many hosts a run may have."""

    workers: int
    most: int
    least: int
    wait: float
    """Seconds that a run which could begin waits for more hosts."""
    behind: float | None = None
    """How many times as long as the others a worker may take for a round; None is no limit."""
    late: float = 0.0
    """Seconds before which nobody is late in the middle of a round."""

    @classmethod
    def of(cls, given: RunSettings) -> Elastic | None:
        """Return what a run's settings say; None if its hosts do not change."""
        if given.min_hosts is None:
            return None
        hosts, behind = given.hosts or given.workers, (given.leave_behind, given.deadline / 4)
        return cls(given.workers, hosts, given.min_hosts, given.start_wait, *behind)


@dataclass
class _Member(WorkerState):
    """What the driver knows of one worker that is there."""

    host: int = 0
    takes_part: bool = False
    """Whether it is part of a generation."""
    after: int = 0
    """The generation after which it is ready for the next one."""


class Membership(Meeting[_Member]):
    """The meetings of a run whose hosts change, one before each generation."""

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
        self._placement = Placement(elastic.workers, elastic.least)
        self._hosts = self._placement.hosts
        self._last: dict[int, int] = {}
        """The host of each worker in the last generation."""
        self._number = 0
        self._met: Json = {}
        self._ended: float | None = clock()
        """When the last generation ended; None while one is at work."""
        self._loss: Loss | None = None
        """What ended the last generation; None if it ended to take in others."""
        self._last_loss: Loss | None = None
        self._gone: list[int] = []
        self._faults: dict[int, str] = {}
        """What happened to hosts that are lost: their processes are ended for it."""
        self._first_ready: float | None = None
        self._events: list[Event] = []
        self._arrivals: Arrivals | None = None
        if elastic.behind is not None:
            self._arrivals = Arrivals(elastic.behind, elastic.late)
        self._back_off = BackOff()

    # -- what the driver asks ------------------------------------------------------------

    @property
    def present(self) -> int:
        """How many hosts are there."""
        with self._lock:
            return len(self._hosts)

    @property
    def lacks(self) -> bool:
        """Whether there are fewer hosts than needed."""
        return self.present < self.elastic.least

    @property
    def loss(self) -> PeerLost | None:
        """The last loss, if there are fewer hosts than needed."""
        with self._lock:
            if self._last_loss is None or len(self._hosts) >= self.elastic.least:
                return None
            return PeerLost(*self._last_loss)

    def has_newcomers(self) -> bool:
        """Return whether workers move after this round: a host has come, or is to leave."""
        with self._lock:
            return bool(self._placement.moves(self._last.values()))

    def send_away(self, hosts: Collection[int]) -> None:
        """Have hosts leave after a round."""
        with self._lock:
            for one in self._hosts.values():
                one.leaves = one.leaves or one.number in hosts

    def wake(self) -> None:
        """Let hosts that wait hear that training is over."""
        with self._lock:
            self._lock.notify_all()

    def departures(self) -> list[int]:
        """Return the hosts that were lost since the last call."""
        with self._lock:
            losses, self._gone = self._gone, []
            return losses

    # -- what hosts say ------------------------------------------------------------------

    def carry(self, line: Line, number: int, where: str, leaves: bool, known: list[int]) -> Json:
        """Return which workers a host carries, and whether there is no more for it to do.

        ``known`` are those that it carries already; a host without any waits for news.
        """
        with self._lock:
            if line not in self._hosts and line not in self._refused:
                self._admit_host(line, number, where)
            if (one := self._hosts.get(line)) is not None:
                one.leaves = one.leaves or leaves
            self._place()
            self._form()
            if self._of(line) == known == []:
                self._lock.wait_for(lambda: self._of(line) or self._is_over(), HOLD)
            workers = self._of(line)
            is_over = self._is_over() or line not in self._hosts or self._has_left(line)
        self._tell()
        return {"workers": workers, "over": is_over}

    def _of(self, line: Line) -> list[int]:
        one = self._hosts.get(line)
        return [] if one is None or self._is_over() else sorted(one.workers)

    def _has_left(self, line: Line) -> bool:
        one = self._hosts[line]
        return one.leaves and not one.workers and len(self._hosts) > 1

    def _admit_host(self, line: Line, number: int, where: str) -> None:
        place = number % self.elastic.most
        is_twice = any(one.number == number for one in self._hosts.values())
        if is_twice or self._is_over() or self._back_off.bars(place, self._clock()):
            self._refused[line] = (number, where, _LEFT_BEHIND)
            return
        if not self._known:
            self._ended = self._clock()
        self._known.add(number)
        self._hosts[line] = HostState(number, where)

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
                host = self._placement.host_of(late.worker)
                if host is not None and self._placement.can_spare(host):
                    self._leave_behind(host, late)
                    host.leaves = True
        self._tell()

    def leave_behind(self) -> None:
        """Go on without a host for which the others have waited for too long."""
        if self._arrivals is None:
            return
        dropped: list[Line] = []
        with self._lock:
            trains = {one.worker for one in self._here.values() if one.takes_part}
            for late in self._arrivals.late(self._clock()):
                host = self._placement.host_of(late.worker)
                if late.worker not in trains or host is None or not self._placement.can_spare(host):
                    continue
                self._leave_behind(host, late)
                dropped = [line for line, one in self._here.items() if one.host == host.number]
                dropped += [line for line, one in self._hosts.items() if one is host]
                for line in dropped:
                    self._refused[line] = (late.worker, host.where, _LEFT_BEHIND)
                break  # the next one when a generation has begun without it
        for line in dropped:
            self._without(line, _LEFT_BEHIND)
        self._tell()

    def _leave_behind(self, host: HostState, late: Behind) -> None:
        """Leave a host behind; its back-off before a return grows each time."""
        self._back_off.leave(host.number % self.elastic.most, self._clock())
        figures = {"seconds": late.seconds, "median": late.median, "factor": self.elastic.behind}
        self._add("behind", worker=late.worker, where=host.where, **figures)

    # -- who carries whom ----------------------------------------------------------------

    def _place(self) -> None:
        """Let hosts carry the workers that they are to carry, between two generations."""
        if self._ended is None or self._is_over() or not self._has_waited():
            return
        moves = self._placement.moves(self._last.values())
        for one in self._hosts.values():
            for worker in sorted(one.workers - moves[one.number] if moves and one.leaves else ()):
                self._add("left", worker=worker, where=one.where)
            one.workers = moves.get(one.number, one.workers)
        if moves:
            self._lock.notify_all()

    def _has_waited(self) -> bool:
        """Return whether no more hosts are waited for."""
        if self._number or len(self._hosts) == self.elastic.most:
            return True
        if len(self._hosts) < self.elastic.least:
            return False
        if self._first_ready is None:
            self._first_ready = self._clock()
        return self._clock() - self._first_ready >= self.elastic.wait

    # -- how generations end and begin ----------------------------------------------------

    def _answer(self, line: Line, call: Json) -> Json:
        if line not in self._here and line not in self._refused:
            self._admit(line, call)
        if line in self._refused:
            return {"lost": self._refused[line], "met": None}
        one = self._here[line]
        self._note(one, call)
        one.after = int(call.get("after", 0))
        if one.ready and one.takes_part and one.after == self._number:
            self._end(_loss(call.get("why")))
        self._place()
        self._form()
        if one.ready and not self._is_carried(one):
            del self._here[line]
            return {"lost": None, "met": {"moved": True}}
        if not one.takes_part and self._is_over():
            return {"lost": one.loss(_OVER), "met": None}
        if not one.takes_part or one.after >= self._number:
            is_over = one.takes_part and self._ended is not None and not one.ready
            return {"lost": self._loss if is_over else None, "met": None}
        return {"lost": None, "met": self._met}

    def _is_carried(self, one: _Member) -> bool:
        """Return whether a worker's host is the one that carries it."""
        host = self._placement.host_of(one.worker)
        return host is not None and host.number == one.host

    def _has_news(self, line: Line) -> bool:
        """Return whether one that is ready for the next generation is part of it, or lost."""
        one = self._here.get(line)
        if one is None or not self._is_carried(one):
            return True
        return one.takes_part and one.after < self._number

    def _admit(self, line: Line, call: Json) -> None:
        one = _Member(line.rank, str(call["where"]), host=int(call["host"]))
        if self._is_over():
            self._refused[line] = one.loss(_OVER)
        elif not self._is_carried(one):
            self._refused[line] = one.loss(_ELSEWHERE)
        else:
            for other, state in list(self._here.items()):
                if state.worker == one.worker:
                    del self._here[other]
                    self._refused[other] = state.loss(_ELSEWHERE)
            self._here[line], self._moved = one, self._clock()

    def _without(self, line: Line, what: str) -> Loss | None:
        """Go on without a worker, or a host."""
        loss: Loss | None = None
        with self._lock:
            if (host := self._hosts.pop(line, None)) is not None:
                self._faults[host.number] = what
                if host.workers or not host.leaves:
                    self._gone.append(host.number)
                if host.workers and not self._is_over():
                    self._last_loss = min(host.workers), host.where, what
            one = self._here.pop(line, None)
            self._lock.notify_all()
            if one is not None and not self._is_over():
                what = self._faults.get(one.host, what)
                self._last_loss = loss = one.loss(what)
                self._add("lost", worker=one.worker, where=one.where, message=what)
                if one.takes_part:
                    self._end(loss)
            self._place()
            self._form()
        self._tell()
        return loss

    def _end(self, loss: Loss | None) -> None:
        if self._ended is None:
            self._ended, self._loss = self._clock(), loss

    def _form(self) -> None:
        """Start the next generation once all workers have checked in."""
        if self._ended is None or self._is_over() or len(self._hosts) < self.elastic.least:
            return
        ready = {
            one.worker: one
            for one in self._here.values()
            if one.ready and one.after >= self._number * one.takes_part and self._is_carried(one)
        }
        if len(ready) < self.elastic.workers:
            return
        seconds = self._clock() - self._ended
        members = [ready[worker] for worker in range(self.elastic.workers)]
        hosts = [one.host for one in members]
        addresses = [one.address for one in members]
        self._met = {"workers": addresses, "hosts": hosts, **self._begin()}
        self._number = int(self._met["attempt"])
        why = None if self._loss is None else f"worker {self._loss[0]}: {self._loss[2]}"
        self._ended = self._loss = None
        self._lock.notify_all()
        if self._arrivals is not None:
            self._arrivals.meet(range(len(members)), self._clock())
        for one in members:
            one.takes_part = True
            if self._last.get(one.worker, one.host) != one.host:
                self._add("joined", worker=one.worker, where=one.where)
        self._last = dict(enumerate(hosts))
        figures = {"workers": len(members), "hosts": len(set(hosts)), "seconds": seconds}
        self._add("generation", **figures, message=why)

    def _add(self, kind: str, **fields: Any) -> None:
        event = {"event": kind, "time": time.time(), "generation": self._number}
        self._events.append({**event, **fields})

    def _tell(self) -> None:
        """Pass on the events, outside the lock: a listener may take long."""
        while self._events:
            with self._lock:
                event = self._events.pop(0) if self._events else None
            if event:
                self._say(event)


def _loss(why: Any) -> Loss | None:
    return None if why is None else (int(why[0]), str(why[1]), str(why[2]))
