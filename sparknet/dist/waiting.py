"""Waiting: notices that no worker is there for long, as when a machine is lost and no other comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparknet.dist.events import Event

if TYPE_CHECKING:
    from sparknet.dist.driver import Driver

FIRST = 15.0
"""Seconds after which it is said; then after twice as many, and so on."""

Slots = Callable[[], tuple[int | None, int] | None]


class Waiting:
    """Looks again and again; ``clock`` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen = clock()
        """When somebody was there last."""
        self._next = FIRST

    def look(self, driver: Driver, slots_of: Slots) -> Event | None:
        """The event to tell now, if one is due.

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
