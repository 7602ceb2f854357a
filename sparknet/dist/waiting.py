"""Waiting: notices when no worker is connected for long, as after the loss of a machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparknet.dist.events import Event

if TYPE_CHECKING:
    from sparknet.dist.driver import Driver

FIRST = 15.0
"""Seconds until the first event; each further one takes twice as long."""

Slots = Callable[[], tuple[int | None, int] | None]


class Waiting:
    """Decides when an event is due; ``clock`` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen = clock()
        """The time at which a worker was last connected."""
        self._next = FIRST

    def look(self, driver: Driver, slots_of: Slots) -> Event | None:
        """The event that is due now, if any.

        Before the first attempt Spark may be busy with the data: then only a lack of slots counts.
        """
        now = self._clock()
        if driver.present or driver.progress.outcome is not None:
            self._seen, self._next = now, FIRST
        seconds = now - self._seen
        if seconds < self._next:
            return None
        self._next = 2 * seconds
        slots = slots_of()
        if slots is None:
            return None
        there, needed = slots
        if not driver.progress.starts and (there is None or there >= needed):
            return None
        shared = {"time": time.time(), "seconds": seconds}
        return {"event": "waiting", **shared, "slots": there, "needed": needed}
