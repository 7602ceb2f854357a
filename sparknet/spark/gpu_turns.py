"""Turns: how many tasks of a machine compute on one GPU at once.

A turn is a name that a process holds in the kernel, an abstract socket: it is free again when the
process ends, however it ends, and leaves no file.
"""

from __future__ import annotations

import errno
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from sparknet.errors import SparkError

PATIENCE = 600.0
"""Seconds that a task may wait for its turn."""
_PAUSES = 0.001, 0.05


@dataclass(frozen=True)
class Turns:
    """So many turns on a GPU; processes that name fewer of them use the first ones."""

    gpu: str
    most: int
    patience: float = PATIENCE

    @contextmanager
    def taken(self) -> Iterator[None]:
        """One turn, as soon as there is one; SparkError if others keep them all."""
        if not sys.platform.startswith("linux"):
            raise SparkError(f"tasks_per_gpu={self.most} needs Linux")
        deadline, pause = time.monotonic() + self.patience, _PAUSES[0]
        while (found := self._free()) is None:
            if time.monotonic() >= deadline:
                raise SparkError(
                    f"other tasks kept all turns on {self.gpu} for {self.patience:g} s: let more "
                    f"of them compute at once (tasks_per_gpu={self.most})"
                )
            time.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
        with closing(found):
            yield

    def _free(self) -> socket.socket | None:
        for number in range(self.most):
            tried = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                tried.bind(f"\0sparknet/{self.gpu}/{number}")
                return tried
            except OSError as error:
                tried.close()
                if error.errno != errno.EADDRINUSE:
                    raise SparkError(f"no turn on {self.gpu}: {error.strerror}") from error
        return None
