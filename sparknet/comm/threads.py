"""Start threads, and run an operation of a comm in one while the worker computes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sparknet.comm.handshake import PAUSE
from sparknet.errors import CommError

PATIENCE = 10.0
"""Seconds of attempts before the error that no thread can be started."""


def start(thread: threading.Thread, patience: float = PATIENCE) -> None:
    """Start a thread; CommError if the system refuses for ``patience`` seconds."""
    until = time.monotonic() + patience
    while True:
        try:
            thread.start()
            return
        except RuntimeError as error:
            if time.monotonic() > until:
                raise CommError(
                    f"no thread can be started for {patience:g} s ({error}): raise the limit of "
                    "processes (ulimit -u, or a container's pids limit)"
                ) from error
        time.sleep(PAUSE)


class UnderWay:
    """Begins an operation at once; `wait` raises its error, if it has one."""

    def __init__(self, operation: Callable[[], None]) -> None:
        self._operation = operation
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="sparknet-mean", daemon=True)
        start(self._thread)

    @property
    def lasts(self) -> bool:
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for the end, whatever it is."""
        self._thread.join()

    def wait(self) -> None:
        self.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._operation()
        except BaseException as error:
            self._error = error
