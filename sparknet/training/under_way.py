"""UnderWay: an operation of a comm in a thread of its own, while the worker computes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sparknet.training.thread_start import start


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
