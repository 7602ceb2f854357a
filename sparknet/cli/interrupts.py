"""Interrupts: handles SIGINT and SIGHUP during training.  Caffe: util/signal_handler.cpp."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

EFFECTS = ("stop", "snapshot", "none")


class Interrupts:
    """Records signals while it is entered; the training reads `stop` and `take_snapshot`.

    A second SIGINT that would stop raises KeyboardInterrupt, for users who cannot wait.
    """

    def __init__(self, sigint: str, sighup: str) -> None:
        self._effects = {signal.SIGINT: sigint}
        if hasattr(signal, "SIGHUP"):
            self._effects[signal.SIGHUP] = sighup
        self._before: dict[signal.Signals, Any] = {}
        self.stop = False
        """Whether a signal asked to stop."""
        self._snapshot = False

    def take_snapshot(self) -> bool:
        """Whether a signal asked for a snapshot since the last call."""
        wanted, self._snapshot = self._snapshot, False
        return wanted

    def __enter__(self) -> Interrupts:
        for number in self._effects:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        effect = self._effects[signal.Signals(number)]
        if effect == "stop":
            if self.stop and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.stop = True
        elif effect == "snapshot":
            self._snapshot = True
