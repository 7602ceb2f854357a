"""Channel: lines of JSON between a process and one that it started."""

from __future__ import annotations

import json
import socket
from typing import Any

Json = dict[str, Any]

_AT_ONCE = 1 << 16


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._received = b""
        self._waiting: list[Json] = []
        self.ended = False
        """Whether the other end is closed and all it said was read."""

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        first, second = socket.socketpair()
        return cls(first), cls(second)

    @classmethod
    def inherited(cls, number: int) -> Channel:
        """The end that was handed to this process under a file number."""
        return cls(socket.socket(fileno=number))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Json) -> None:
        """Nobody may be there to read it: that is noticed elsewhere."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            self.ended = True

    def read(self) -> list[Json]:
        """Wait until something comes: whole messages, which may be none."""
        try:
            part = self._socket.recv(_AT_ONCE)
        except OSError:
            part = b""
        self.ended = not part
        *lines, self._received = (self._received + part).split(b"\n")
        return [json.loads(line) for line in lines]

    def wait(self) -> Json | None:
        """The next message; None if the other end is closed.  Not to be mixed with `read`."""
        while not self._waiting and not self.ended:
            self._waiting = self.read()
        return self._waiting.pop(0) if self._waiting else None

    def close(self) -> None:
        self._socket.close()
