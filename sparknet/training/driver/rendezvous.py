"""Rendezvous: gathers the workers of an attempt at the driver, and notices lost ones.

Spark's own barrier polls once a second, and waits for ever for a Python worker that hangs.
After the rendezvous the workers watch each other (`sparknet.comm.heartbeat`).  They go on to
tell the driver what they do, and the driver tells them of a worker that it has lost.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Generic, TypeVar

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
class WorkerState:
    """What the driver knows of one worker that is there."""

    worker: int
    where: str
    heard: float = 0.0
    ready: bool = False
    address: Any = None
    """What it tells the others when they meet."""
    doing: str = ""
    moved: Any = None
    """Changes as long as the worker gets on."""

    def loss(self, fault: str) -> Loss:
        return self.worker, self.where, fault


State = TypeVar("State", bound=WorkerState)


class Meeting(ABC, Generic[State]):
    """The driver's side of a place where workers meet; it tells them by their lines.

    ``begin`` is called when all that are waited for are ready; all get what it returns.
    """

    def __init__(self, begin: Callable[[], Json], clock: Callable[[], float]) -> None:
        self._begin, self._clock = begin, clock
        self._here: dict[Line, State] = {}
        self._refused: dict[Line, Loss] = {}
        """Lines that are no longer part of it, and the loss that they hear of."""
        self._known: set[int] = set()
        """The workers, or the hosts, that ever called."""
        self._moved = clock()
        """The time at which a worker last got on."""
        self._lock = threading.Condition(threading.Lock())

    @property
    def present(self) -> int:
        """How many are there."""
        with self._lock:
            return len(self._here)

    def entered(self) -> list[int]:
        """Return the workers that ever called; where hosts change, the hosts."""
        with self._lock:
            return sorted(self._known)

    def standstill(self, seconds: float) -> Standstill | None:
        """Return what the workers do, if there are some and none of them got on for so long."""
        with self._lock:
            still = self._clock() - self._moved
            if not self._here or still < seconds:
                return None
            return still, {
                str(one.worker): one.doing for one in self._here.values()
            } | self._lacking()

    def hear(self, line: Line, call: Json) -> Json:
        """Answer a worker's heartbeat: who is lost, or what all said when they met.

        It may wait for that, for as long as it says.
        """
        with self._lock:
            answer = self._answer(line, call)
        self._tell()
        seconds = min(float(call.get("waits", 0.0)), HOLD)
        if answer["lost"] is None and answer["met"] is None and seconds:
            with self._lock:
                self._lock.wait_for(lambda: self._has_news(line), seconds)
                answer = self._answer(line, call)
            self._tell()
        return answer

    def _note(self, one: State, call: Json) -> None:
        """Note what a worker says of itself, and whether it got on since its last call."""
        one.ready, one.address = bool(call["ready"]), call["said"]
        one.doing = str(call.get("doing", ""))
        if call.get("moved") != one.moved:
            one.moved, self._moved = call.get("moved"), self._clock()

    def _enter(self, line: Line, one: State) -> None:
        self._here[line] = one
        self._known.add(one.worker)
        self._moved = self._clock()

    def _lacking(self) -> Json:
        """Return what is to be said of workers that are not there, in a standstill."""
        return {}

    def _tell(self) -> None:
        """Pass on events, outside the lock: a listener may take long."""
        return

    @abstractmethod
    def _answer(self, line: Line, call: Json) -> Json: ...

    @abstractmethod
    def _has_news(self, line: Line) -> bool:
        """Return whether a worker that waits would hear something new."""

    @abstractmethod
    def miss(self, line: Line, fault: str) -> Loss | None:
        """Handle the silence of a worker; None if it was lost before."""

    @abstractmethod
    def leave(self, line: Line) -> None:
        """Handle the end of a line."""

    @abstractmethod
    def fail(self, line: Line, message: str) -> None:
        """Handle a worker's failure."""


class Rendezvous(Meeting[WorkerState]):
    """A meeting of a fixed number of workers: a stage that is run again has new lines."""

    def __init__(
        self, begin: Callable[[], Json] = dict, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(begin, clock)
        self._met: Json | None = None
        self._size = 0
        self._heard = clock()
        """The time of the last call of any worker."""
        self._begun = self._heard
        """The time of the first call of this attempt."""

    def miss(self, line: Line, fault: str) -> Loss | None:
        with self._lock:
            entry = self._here.get(line)
            if entry is None:
                return None
            loss = entry.loss(fault)
            self._end(loss)
            return loss

    def leave(self, line: Line) -> None:
        with self._lock:
            self._refused.pop(line, None)
            entry = self._here.pop(line, None)
            if entry is not None and self._met is None:
                self._end(entry.loss("its process ended"))

    def fail(self, line: Line, message: str) -> None:
        """Handle a worker's failure: this attempt is over and does not delay the next."""
        self.miss(line, f"it failed: {message}")

    def _lacking(self) -> Json:
        if self._met is not None:
            return {}
        return {str(rank): "has not called the driver yet" for rank in self._missing()}

    def _missing(self) -> list[int]:
        return sorted(set(range(self._size)) - {one.worker for one in self._here.values()})

    def _has_news(self, line: Line) -> bool:
        return self._met is not None or line in self._refused

    def _answer(self, line: Line, call: Json) -> Json:
        self._forgive(float(call["deadline"]))
        if line not in self._here and line not in self._refused:
            self._admit(line, call)
        if line in self._refused:
            return {"lost": self._refused[line], "met": None}
        entry = self._here[line]
        self._note(entry, call)
        entry.heard = self._clock()
        self._size = int(call["of"])
        if self._met is None:
            self._met = self._meeting(self._size)
        loss = None if self._met else self._silent(call) or self._absent(call)
        return {"lost": loss, "met": self._met}

    def _admit(self, line: Line, call: Json) -> None:
        """Enter a new line; workers that have met, or have its rank, are of an older attempt."""
        entry = WorkerState(line.rank, str(call["where"]), self._clock())
        loss = entry.loss("it was started again")
        if self._met is not None:
            self._end(loss)
        for other, state in list(self._here.items()):
            if state.worker == entry.worker:
                del self._here[other]
                self._refused[other] = loss
                self._lock.notify_all()
        if not self._here:
            self._begun = entry.heard
        self._enter(line, entry)

    def _end(self, loss: Loss) -> None:
        self._refused |= dict.fromkeys(self._here, loss)
        self._here.clear()
        self._met = None
        self._lock.notify_all()

    def _meeting(self, size: int) -> Json | None:
        ready = {entry.worker: entry.address for entry in self._here.values() if entry.ready}
        if len(ready) < size:
            return None
        self._lock.notify_all()
        return {"workers": [ready[worker] for worker in range(size)], **self._begin()}

    def _forgive(self, deadline: float) -> None:
        """Restart the time of all workers if nobody called for long: this process was paused."""
        now = self._clock()
        if now - self._heard > deadline / 2:
            self._begun += now - self._heard
            for entry in self._here.values():
                entry.heard = now
        self._heard = now

    def _silent(self, call: Json) -> Loss | None:
        deadline = float(call["deadline"])
        quiet = self._clock() - deadline
        late = (entry for entry in self._here.values() if entry.heard < quiet)
        return next((entry.loss(f"no heartbeat for {deadline:g} s") for entry in late), None)

    def _absent(self, call: Json) -> Loss | None:
        """Return the first worker that has not called, when it should have."""
        patience = max(float(call["deadline"]), STARTING)
        missing = self._missing()
        if self._clock() - self._begun <= patience or not missing:
            return None
        fault = f"it did not call the driver within {patience:g} s of the others"
        return missing[0], "an unknown place", fault


class Presence:
    """The worker's side: sends heartbeats to the driver, and meets the others."""

    def __init__(
        self, line: Line, place: str, size: int, where: str, deadline: float, host: int = 0
    ) -> None:
        self._line, self._deadline = line, deadline
        self._said: Json = {
            "place": place,
            "of": size,
            "where": where,
            "host": host,
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
