"""Roll: who is there before all workers have met, and who of them has gone quiet.

Afterwards they watch each other (`sparknet.dist.pulse`).  But until they have met none knows the
others yet, and Spark itself would wait for ever for a Python worker that hangs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
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
    met: bool = False
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
            entry.ready, entry.met = bool(call["ready"]), bool(call["met"])
            entry.heard = time.monotonic()
            ready = {one.worker for one in self._entries.values() if one.ready}
            return {"all": len(ready) == int(call["of"]), "silent": self._silent(call)}

    def leave(self, line: Line) -> None:
        with self._lock:
            self._entries.pop(line, None)

    def forget(self) -> None:
        """A worker failed and Spark ends this attempt: who hangs in it does not concern the next.

        Those that live will be heard again.
        """
        with self._lock:
            self._entries.clear()

    def _silent(self, call: dict[str, Any]) -> list[Any] | None:
        quiet = time.monotonic() - float(call["deadline"])
        late = (one for one in self._entries.values() if not one.met and one.heard < quiet)
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
            "met": False,
        }
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="sparknet-presence", daemon=True)

    def __enter__(self) -> Presence:
        self._call()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait_for_all(self) -> None:
        """Until all workers are ready; PeerLost if one gives no sign of life meanwhile."""
        self._said["ready"] = True
        while not self._look("waiting for its records"):
            self._over.wait(_POLL)

    def meet(self, gather: Callable[[], list[str]]) -> list[str]:
        """What Spark's rendezvous gives; PeerLost if a worker gives no sign of life meanwhile.

        It runs aside: if it is given up it waits on, and ends with the process.
        """
        gathered: Future[list[str]] = Future()
        threading.Thread(
            target=_fill, args=(gathered, gather), name="sparknet-meeting", daemon=True
        ).start()
        while not wait([gathered], _POLL).done:
            self._look("meeting it")
        self._said["met"] = True
        self._call()
        return gathered.result()

    def _look(self, meanwhile: str) -> bool:
        """Whether all are ready."""
        answer = self._call()
        if answer["silent"] is not None:
            worker, where = answer["silent"]
            raise PeerLost(worker, where, f"no sign of life for {self._deadline:g} s", meanwhile)
        return bool(answer["all"])

    def _repeat(self) -> None:
        with suppress(CommError):  # the driver is gone, which the worker will find out
            while not self._over.wait(self._deadline / 4):
                self._call()

    def _call(self) -> dict[str, Any]:
        return self._line.call("here", **self._said)[0]


def _fill(gathered: Future[list[str]], gather: Callable[[], list[str]]) -> None:
    try:
        gathered.set_result(gather())
    except BaseException as error:
        gathered.set_exception(error)
