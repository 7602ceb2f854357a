"""Rendezvous: gathers the workers of an attempt at the driver, and notices lost ones.

Spark's own barrier polls once a second, and waits for ever for a Python worker that hangs.
After the rendezvous the workers watch each other (`sparknet.comm.heartbeat`).  They go on to
tell the driver what they do, and the driver tells them of a worker that it has lost.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from sparknet.comm.rpc import Line
from sparknet.comm.threads import start
from sparknet.errors import CommError, PeerLost

HOLD = 0.5
"""Seconds for which the driver may keep the call of a worker that waits for the others."""
STARTING = 60.0
"""Seconds, unless the deadline is longer, in which the others' first calls must follow the first
one: Python may have to be started on another machine."""

Json = dict[str, Any]
Loss = tuple[int, str, str]
"""The rank of a lost worker, its place, and what happened to it."""


Standstill = tuple[float, Json]
"""For how many seconds no worker got on, and what each of them does: by worker, as text."""


@dataclass
class _WorkerState:
    """What the driver knows of one worker."""

    worker: int
    where: str
    heard: float
    ready: bool = False
    said: Any = None
    doing: str = ""
    moved: Any = None
    """Changes as long as the worker gets on."""

    def lost(self, what: str) -> Loss:
        return self.worker, self.where, what


class Rendezvous:
    """The driver's side.  It tells workers by their lines: a stage that is run again has new ones.

    ``begin`` is called when all workers of an attempt are ready; all get what it returns.
    """

    def __init__(
        self, begin: Callable[[], Json] = dict, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._begin, self._clock = begin, clock
        self._entries: dict[Line, _WorkerState] = {}
        self._over: dict[Line, Loss] = {}
        """Lines of attempts that are over, and the worker whose loss ended them."""
        self._met: Json | None = None
        self._size = 0
        self._heard = self._clock()
        """The time of the last call of any worker."""
        self._begun = self._heard
        """The time of the first call of this attempt."""
        self._moved = self._heard
        """The time at which a worker last got on."""
        self._known: set[int] = set()
        """The workers that ever called."""
        self._lock = threading.Condition(threading.Lock())

    @property
    def present(self) -> int:
        """How many are there, of those that are not over."""
        with self._lock:
            return len(self._entries)

    def has_entered(self, worker: int) -> bool:
        """Return whether a worker called in any attempt."""
        with self._lock:
            return worker in self._known

    def standstill(self, seconds: float) -> Standstill | None:
        """Return what the workers do, if there are some and none of them got on for so long."""
        with self._lock:
            still = self._clock() - self._moved
            if not self._entries or still < seconds:
                return None
            doing: Json = {str(one.worker): one.doing for one in self._entries.values()}
            here = {one.worker for one in self._entries.values()}
            if self._met is None:
                lacking = set(range(self._size)) - here
                doing |= {str(rank): "has not called the driver yet" for rank in sorted(lacking)}
            return still, doing

    def hear(self, line: Line, call: Json) -> Json:
        """Answer a worker's heartbeat: what all said when all are ready, or who is lost.

        It may wait for that, for as long as it says.
        """
        with self._lock:
            answer = self._answer(line, call)
            if is_empty(answer) and (seconds := waits(call)):
                self._lock.wait_for(lambda: self._met is not None or line in self._over, seconds)
                answer = self._answer(line, call)
            return answer

    def miss(self, line: Line, what: str) -> Loss | None:
        """Handle the silence of a worker: this attempt is over; None if it was before."""
        with self._lock:
            entry = self._entries.get(line)
            if entry is None:
                return None
            loss = entry.lost(what)
            self._end(loss)
            return loss

    def leave(self, line: Line) -> None:
        """Handle the end of a line: its worker is lost, and those that wait for it are told."""
        with self._lock:
            self._over.pop(line, None)
            entry = self._entries.pop(line, None)
            if entry is not None and self._met is None:
                self._end(entry.lost("its process ended"))

    def fail(self, line: Line, message: str) -> None:
        """Handle a worker's failure: this attempt is over and does not delay the next."""
        with self._lock:
            if entry := self._entries.get(line):
                self._end(entry.lost(f"it failed: {message}"))

    def _answer(self, line: Line, call: Json) -> Json:
        self._forgive(float(call["deadline"]))
        if line not in self._entries and line not in self._over:
            self._enter(line, call)
        if line in self._over:
            return {"lost": self._over[line], "met": None}
        entry = self._entries[line]
        entry.ready, entry.said = bool(call["ready"]), call["said"]
        entry.heard = self._clock()
        self._size = int(call["of"])
        self._watch(entry, call)
        if self._met is None:
            self._met = self._meeting(self._size)
        loss = None if self._met else self._silent(call) or self._absent(call)
        return {"lost": loss, "met": self._met}

    def _enter(self, line: Line, call: Json) -> None:
        """Enter a new line; workers that have met, or have its rank, are of an older attempt."""
        entry = _WorkerState(line.rank, str(call["where"]), self._clock())
        loss = entry.lost("it was started again")
        if self._met is not None:
            self._end(loss)
        for other, state in list(self._entries.items()):
            if state.worker == entry.worker:
                del self._entries[other]
                self._over[other] = loss
                self._lock.notify_all()
        if not self._entries:
            self._begun = entry.heard
        self._entries[line] = entry
        self._known.add(entry.worker)
        self._moved = entry.heard

    def _watch(self, entry: _WorkerState, call: Json) -> None:
        """Note what a worker does, and whether it got on since its last call."""
        entry.doing = str(call.get("doing", ""))
        if call.get("moved") != entry.moved:
            entry.moved = call.get("moved")
            self._moved = self._clock()

    def _end(self, loss: Loss) -> None:
        self._over |= dict.fromkeys(self._entries, loss)
        self._entries.clear()
        self._met = None
        self._lock.notify_all()

    def _meeting(self, size: int) -> Json | None:
        ready = {entry.worker: entry.said for entry in self._entries.values() if entry.ready}
        if len(ready) < size:
            return None
        self._lock.notify_all()
        return {"workers": [ready[worker] for worker in range(size)], **self._begin()}

    def _forgive(self, deadline: float) -> None:
        """Restart the time of all workers if nobody called for long: this process was paused."""
        now = self._clock()
        if now - self._heard > deadline / 2:
            self._begun += now - self._heard
            for entry in self._entries.values():
                entry.heard = now
        self._heard = now

    def _silent(self, call: Json) -> Loss | None:
        quiet = self._clock() - float(call["deadline"])
        late = (entry for entry in self._entries.values() if entry.heard < quiet)
        fault = f"no heartbeat for {float(call['deadline']):g} s"
        return next((entry.lost(fault) for entry in late), None)

    def _absent(self, call: Json) -> Loss | None:
        """Return the first worker that has not called, when it should have."""
        patience = max(float(call["deadline"]), STARTING)
        if self._clock() - self._begun <= patience:
            return None
        here = {entry.worker for entry in self._entries.values()}
        missing = min(set(range(self._size)) - here, default=None)
        fault = f"it did not call the driver within {patience:g} s of the others"
        return None if missing is None else (missing, "an unknown place", fault)


def waits(call: Json) -> float:
    """For how many seconds a call may be kept that has no answer yet."""
    return min(float(call.get("waits", 0.0)), HOLD)


def is_empty(answer: Json) -> bool:
    """Return whether a worker that waits hears nothing of use."""
    return answer["lost"] is None and answer["met"] is None


class Presence:
    """The worker's side: sends heartbeats to the driver, and meets the others."""

    def __init__(self, line: Line, place: str, size: int, where: str, deadline: float) -> None:
        self._line, self._deadline = line, deadline
        self._said: Json = {
            "place": place,
            "of": size,
            "where": where,
            "deadline": deadline,
            "ready": False,
            "said": None,
            "after": 0,
        }
        """Replaced as a whole, so that an answer belongs to what was said."""
        self._lock = threading.Lock()
        self._report: Callable[[], Json] = _reading
        self._ended: Callable[[CommError], None] = _unheard
        self._error: CommError | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="sparknet-presence", daemon=True)

    def __enter__(self) -> Presence:
        self._call()
        start(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def meet(
        self, said: Any = None, patience: float = inf, after: int = 0, why: Any = None
    ) -> Json:
        """Wait for all workers; returns what they and the driver say, PeerLost if one is lost.

        Where members change, it is the meeting ``after`` a generation, which ended because of
        ``why``: a worker, its place and what happened to it.
        """
        with self._lock:
            self._said = {**self._said, "ready": True, "said": said, "after": after, "why": why}
            self._error, self._ended = None, _unheard
        self._report = lambda: {"doing": "waits for the others to come"}
        until = time.monotonic() + patience
        while (meeting := self._look(until - time.monotonic())) is None:
            if time.monotonic() >= until:
                raise CommError(f"not all workers came within {patience:g} s")
        return meeting

    def go_on(
        self,
        report: Callable[[], Json],
        ended: Callable[[CommError], None],
        generation: int | None = None,
    ) -> None:
        """After the meeting: tell the driver what `report` says, and `ended` if the run is over.

        Where members change, ``ended`` hears that this ``generation`` is over.
        """
        with self._lock:
            if generation is not None and self._said["ready"]:
                self._said = {**self._said, "ready": False, "after": generation, "why": None}
            self._report, self._ended = report, ended
            error = self._error
        if error is not None:
            ended(error)

    def _look(self, left: float) -> Json | None:
        answer = self._call(waits=max(min(left, HOLD, self._deadline / 8), 0.0))
        if answer["lost"] is not None:
            worker, where, what = answer["lost"]
            raise PeerLost(worker, where, what, "waiting for the others")
        meeting: Json | None = answer["met"]
        return meeting

    def _repeat(self) -> None:
        try:
            while not self._over.wait(self._deadline / 4):
                call = self._said
                loss = self._call()["lost"]
                if loss is not None:
                    self._end(PeerLost(*loss), call)
        except CommError as error:
            self._end(error, self._said)

    def _end(self, error: CommError, said: Json) -> None:
        with self._lock:
            if said is not self._said or self._error is not None:
                return
            self._error, ended = error, self._ended
        ended(error)

    def _call(self, **more: Any) -> Json:
        return self._line.call("here", **self._said, **self._report(), **more)[0]


def _reading() -> Json:
    """Return what a worker does before it is ready; its processor time tells that it gets on."""
    return {"doing": "reads its records", "moved": int(time.process_time())}


def _unheard(error: CommError) -> None:
    """Nothing: the worker's own next call says it."""
