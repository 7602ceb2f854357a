"""Waiting: notices when no worker is connected for long, as after the loss of a machine.

Standing: notices when workers are connected, and none gets on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparknet.training.events import Event

if TYPE_CHECKING:
    from sparknet.training.driver import Driver
    from sparknet.training.rendezvous import Standstill

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
        """The event that is due now, if any.

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
        """The event that is due now, if any."""
        if found is None:
            self._next = self._first
            return None
        seconds, workers = found
        if seconds < self._next:
            return None
        self._next = 2 * seconds
        return {"event": "standstill", "time": time.time(), "seconds": seconds, "workers": workers}
