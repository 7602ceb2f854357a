"""Starts threads although the system may be out of threads for a moment."""

from __future__ import annotations

import threading
import time

from sparknet.errors import CommError
from sparknet.training.handshake import PAUSE

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
