"""What goes wrong in a run, and when: what it does to processes is all real."""

import os
import re
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.spark.cluster import Event, alive, parent, until, waits

Act = Callable[["Saboteur"], None]


class Saboteur:
    """Does something once, at a moment, to the workers: it knows their processes from events.

    Those of a stage that is run again because of it are others.
    """

    def __init__(self, act: Act, when: Callable[[Event], bool]) -> None:
        self._act, self._when = act, when
        self.workers: dict[int, int] = {}
        self.done = False

    def __call__(self, event: Event) -> None:
        if event["event"] == "reading" and not self.done:
            process = re.search(r"process (\d+)", event["where"])
            assert process is not None
            self.workers[event["worker"]] = int(process[1])
        if not self.done and self._when(event):
            self.done = True
            self._act(self)

    def executor(self, worker: int) -> int:
        """The JVM: the parent of the daemon that is the parent of the Python worker."""
        return parent(parent(self.workers[worker]))


def go_on(process: int) -> None:
    """Let one that was stopped run, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGCONT)


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    until(lambda: not alive(process), f"process {process} ends")


def kill_worker(worker: int) -> Act:
    return lambda saboteur: kill(saboteur.workers[worker])


def kill_executor(worker: int) -> Act:
    return lambda saboteur: kill(saboteur.executor(worker))


def while_communicating(act: Act) -> Act:
    """Worker 1 stands still until worker 0 waits for it: that one is in the midst of a mean."""
    return lambda saboteur: _beside_stopped(saboteur, act)


def while_snapshotting(folder: Path, act: Act) -> Act:
    """Worker 1 stands still before a snapshot, until worker 0 has begun it and waits."""

    def later(saboteur: Saboteur) -> None:
        until(waits(saboteur.workers[1]), "worker 1 waits for worker 0")
        _beside_stopped(saboteur, act, lambda: any(folder.rglob(".round-*.draft")))

    return later


def _beside_stopped(
    saboteur: "Saboteur", act: Act, has_begun: Callable[[], bool] = lambda: True
) -> None:
    os.kill(saboteur.workers[1], signal.SIGSTOP)

    def wait() -> None:
        until(has_begun, "worker 0 begins a snapshot")
        until(waits(saboteur.workers[0]), "worker 0 waits for worker 1")
        act(saboteur)
        go_on(saboteur.workers[1])

    threading.Thread(target=wait).start()


def at_round(number: int) -> Callable[[Event], bool]:
    return lambda event: event["event"] == "round" and event["round"] == number


def at(kind: str) -> Callable[[Event], bool]:
    return lambda event: event["event"] == kind


def both_read() -> Callable[[Event], bool]:
    seen: set[int] = set()

    def look(event: Event) -> bool:
        if event["event"] == "reading":
            seen.add(event["worker"])
        return len(seen) == 2

    return look
