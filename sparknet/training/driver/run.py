"""Run: a training run on the driver's side, for local processes and for Spark tasks."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sparknet.comm.handshake import make_secret
from sparknet.comm.rpc import Link
from sparknet.errors import CommError, OutOfMemory, SparkNetError, WorkerError
from sparknet.native import NDArray
from sparknet.training.checkpoints.store import Store
from sparknet.training.driver.crew import Crew
from sparknet.training.driver.driver import Driver
from sparknet.training.driver.failure import Failure, first_cause
from sparknet.training.driver.membership import Elastic
from sparknet.training.driver.stragglers import Stragglers
from sparknet.training.events import Event, OnEvent, tell
from sparknet.training.history import History
from sparknet.training.observers import listener, observers
from sparknet.training.result import Trained, whole
from sparknet.training.workers.rounds import Outcome

if TYPE_CHECKING:
    from sparknet.training.driver.rendezvous import Standstill


FIRST = 15.0
"""Seconds until the first event; each further one takes twice as long."""
PREPARING = 60.0
"""Seconds in which Spark may prepare the rows, or start the workers, before a word."""

Slots = Callable[[], tuple[int | None, int] | None]


class Waiting:
    """Decides when an event is due; ``clock`` returns seconds."""

    def __init__(self, first: float = FIRST, clock: Callable[[], float] = time.monotonic) -> None:
        self._first, self._clock = first, clock
        self._seen = clock()
        """The time at which a worker was last connected."""
        self._next = first

    def look(self, driver: Driver, slots_of: Slots) -> Event | None:
        """Return the event that is due now, if any.

        Before the first attempt Spark may be busy with the data: that is told after a minute, and
        only a lack of slots before.
        """
        now = self._clock()
        if driver.present or driver.progress.outcome is not None:
            self._seen, self._next = now, self._first
        seconds = now - self._seen
        if seconds < self._next:
            return None
        slots = slots_of()
        if slots is None:
            return None
        there, needed = slots
        lacking = there is not None and there < needed
        if not (driver.progress.starts or lacking or seconds >= PREPARING):
            self._next = min(2 * seconds, PREPARING)
            return None
        self._next = 2 * seconds
        shared = {"time": time.time(), "seconds": seconds}
        return {"event": "waiting", **shared, "slots": there, "needed": needed}


class Standing:
    """Decides when an event about a standstill is due: after twice as long each time."""

    def __init__(self, first: float) -> None:
        self._first = self._next = first

    def look(self, found: Standstill | None) -> Event | None:
        """Return the event that is due now, if any."""
        if found is None:
            self._next = self._first
            return None
        seconds, workers = found
        if seconds < self._next:
            return None
        self._next = 2 * seconds
        return {"event": "standstill", "time": time.time(), "seconds": seconds, "workers": workers}


_LOOK = 0.2
"""Seconds between two checks of the workers."""
_GRACE, _LAST = 10.0, 1.0
"""Seconds that workers may take to end, after the weights have come and after a loss."""
_WORDS = 2.0
"""Seconds in which the others may report their errors, where nobody starts them again."""
_SHORT = 30.0
"""Seconds for which the driver may be unable to take workers' connections."""


Result = TypeVar("Result", bound=Trained)


class Run:
    """Serves the workers of one call of `train` or `Trainer.fit` while it is entered."""

    def __init__(
        self,
        weights: NDArray,
        store: Store | None,
        on_event: OnEvent | None,
        *,
        resume: bool,
        seal: str,
        host: str = "127.0.0.1",
        deadline: float = 60.0,
        foreign: type[SparkNetError] = WorkerError,
        elastic: Elastic | None = None,
        make_driver: Callable[..., Driver] = Driver,
    ) -> None:
        self._history = History()
        self._on_event, self._foreign = listener(on_event), foreign
        self._observers = observers()
        self._stragglers = Stragglers()
        self._unsaved: set[str] = set()
        self._waiting, self._still = Waiting(min(FIRST, deadline)), Standing(deadline)
        link = Link(secrets.token_hex(8), (host, 0), make_secret(), seal, deadline)
        view = np.asarray(weights).data.cast("B")
        self.driver = make_driver(link, view, store, self._hear, resume, elastic)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.driver.close()
        for observer in self._observers if kind is not None else ():
            observer.failed()

    def done(self, trained: Result) -> Result:
        """Return the result of the training, of which observers hear; raise `Interrupted` with it
        where Ctrl-C ended the training."""
        for observer in self._observers:
            if trained.outcome.reason == "interrupted":
                observer.failed()
            else:
                observer.done(trained)
        return whole(trained)

    @property
    def history(self) -> History:
        """The events; of a long run the older rounds are thinned out."""
        return self._history

    def link(self, host: str = "127.0.0.1") -> Link:
        """Return the link for workers that reach the driver under the name ``host``."""
        return replace(self.driver.link, driver=(host, self.driver.link.driver[1]))

    def supervise(self, crew: Crew) -> tuple[Outcome, NDArray]:
        """Wait until training has ended; returns its outcome and the weights.

        The first interruption (Ctrl-C) ends training after the current round, with a snapshot;
        then `done` raises it again.
        """
        progress = self.driver.progress
        with interruptible(self.driver.interrupt), crew:
            late = inf
            while not self._all_ended(crew) and time.monotonic() < late:
                late = min(late, time.monotonic() + self._patience(crew))
            if progress.weights is None or progress.outcome is None:
                raise self._failure(crew)
        outcome = Outcome(**progress.outcome)
        return outcome, NDArray.view(np.frombuffer(progress.weights, np.float32))

    def _all_ended(self, crew: Crew) -> bool:
        """Return whether all have ended, after a moment, and no others come for them."""
        if not crew.wait(_LOOK):
            return False
        members, progress = self.driver.members, self.driver.progress
        if members is None or progress.outcome is not None or progress.failures:
            return True
        return not crew.keep_up(members)

    def _patience(self, crew: Crew) -> float:
        """Return the seconds to wait for the workers from now on; raise what ends the run."""
        progress = self.driver.progress
        members = self.driver.members
        if progress.outcome is not None:
            return _LAST if progress.failures and members is None else _GRACE
        if progress.broken is not None:
            raise progress.broken
        seconds, reason = self.driver.trouble
        if seconds > _SHORT:
            raise CommError(
                f"the driver can take no connections from workers for {seconds:.0f} s ({reason}): "
                "raise the limits of open files (ulimit -n) and of processes"
            )
        cause = first_cause(self._failures())
        if cause is not None and not (crew.restarts and isinstance(cause, OutOfMemory)):
            raise cause
        if members is not None:
            crew.keep_up(members)
        elif (loss := crew.hung()) is not None:
            raise loss
        self.say(self._still.look(self.driver.standstill()))
        self.say(self._waiting.look(self.driver, crew.slots))
        is_lost = members is None and not crew.restarts and (progress.failures or crew.some_ended)
        return _WORDS if is_lost else inf

    def say(self, event: Event | None) -> None:
        """Pass on an event of the driver's own, if there is one."""
        if event is not None:
            with suppress(OSError):  # the listener failed
                self.driver.hear(event)
        if self.driver.progress.broken is not None:
            raise self.driver.progress.broken

    def _failures(self) -> list[Failure]:
        return [
            Failure.of(report, self._foreign) for report in tuple(self.driver.progress.failures)
        ]

    def _failure(self, crew: Crew) -> Exception:
        """Return the error of a run in which no worker sent weights."""
        progress, failures = self.driver.progress, self._failures()
        return progress.broken or first_cause(failures) or crew.failure(failures)

    def _hear(self, event: Event) -> None:
        """Record and pass on an event of the workers."""
        self._history(event)
        for observer in self._observers:
            observer.hear(event)
        tell(self._on_event, event, self._unsaved)
        for slow in self._stragglers.hear(event):
            self._hear(slow)


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` at the first interruption (Ctrl-C); the second raises KeyboardInterrupt.

    Meanwhile Spark's own handler, which would cancel the job, is not called.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def first(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
