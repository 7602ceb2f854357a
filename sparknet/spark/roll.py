"""Roll: who is there before all workers have met, and who of them has gone quiet.

Afterwards they watch each other (`sparknet.dist.pulse`).  But while records are written none
knows the others yet, and Spark itself would wait for ever for a Python worker that hangs.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sparknet.errors import CommError, PeerLost
from sparknet.spark.line import Line

_POLL = 0.1
"""Seconds between two questions of a worker that waits for the others."""


@dataclass
class _Entry:
    """What is known of one task."""

    worker: int
    where: str
    ready: bool = False
    heard: float = field(default_factory=time.monotonic)


class Roll:
    """The driver's side.  A task is known by its line: a stage that is run again has others."""

    def __init__(self) -> None:
        self._entries: dict[Line, _Entry] = {}
        self._lock = threading.Lock()

    def hear(self, line: Line, call: dict[str, Any]) -> dict[str, Any]:
        """A task says that it is there; whether all are ready, and who is silent."""
        with self._lock:
            entry = self._entries.setdefault(line, _Entry(int(call["worker"]), str(call["where"])))
            entry.ready, entry.heard = bool(call["ready"]), time.monotonic()
            ready = {one.worker for one in self._entries.values() if one.ready}
            return {"all": len(ready) == int(call["of"]), "silent": self._silent(call)}

    def leave(self, line: Line) -> None:
        with self._lock:
            self._entries.pop(line, None)

    def _silent(self, call: dict[str, Any]) -> list[Any] | None:
        quiet = time.monotonic() - float(call["deadline"])
        late = (one for one in self._entries.values() if not one.ready and one.heard < quiet)
        return next(([one.worker, one.where] for one in late), None)


class Presence:
    """The worker's side: signs of life from the beginning until all have met."""

    def __init__(self, line: Line, worker: int, size: int, where: str, deadline: float) -> None:
        self._line, self._deadline = line, deadline
        self._said: dict[str, Any] = {
            "worker": worker,
            "of": size,
            "where": where,
            "deadline": deadline,
            "ready": False,
        }
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="sparknet-presence", daemon=True)

    def __enter__(self) -> Presence:
        self._call(ready=False)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait_for_all(self) -> None:
        """Until all workers are ready; PeerLost if one gives no sign of life meanwhile."""
        while not (answer := self._call(ready=True))["all"]:
            if answer["silent"] is not None:
                worker, where = answer["silent"]
                reason = f"no sign of life for {self._deadline:g} s"
                raise PeerLost(worker, where, reason, "waiting for its records")
            self._over.wait(_POLL)

    def _repeat(self) -> None:
        with suppress(CommError):  # the driver is gone, which the worker will find out
            while not self._over.wait(self._deadline / 4):
                self._call(self._said["ready"])

    def _call(self, ready: bool) -> dict[str, Any]:
        self._said["ready"] = ready
        return self._line.call("here", **self._said)[0]
