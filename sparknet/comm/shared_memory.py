"""Memory that the workers of one machine share, so that their bytes need no network.

A worker makes one anonymous file (memfd) for all higher ranks on its machine, which open it below
/proc.  It is sealed against changes of its size, and holds a random number that the worker has told
them over the sealed connection; a rank that cannot open it, as in another container, keeps to TCP.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

from sparknet.comm.wire import Buffer, Pipe
from sparknet.native import NDArray
from sparknet.native.ring import Ring, ring_bytes

SWITCH = "SPARKNET_SHARED_MEMORY"
"""The environment variable that turns it off: 0."""
CAPACITY = 1 << 20
"""The bytes of a ring."""
CHANNELS = 3
"""Pipes between two workers, where all speak with all."""

_NAME = "sparknet"
_NONCE = 32
_ROOM = -(-ring_bytes(CAPACITY) // PAGESIZE) * PAGESIZE
"""The bytes of a ring's place in the file."""


def machine() -> str:
    """Equal for workers that may open each other's files; empty for one that shares nothing."""
    if os.environ.get(SWITCH) == "0" or sys.platform != "linux":
        return ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()} {os.getuid()}"
    return ""


class SharedFile:
    """Room for the pipes between its maker and some other workers."""

    def __init__(self, memory: NDArray, channels: int) -> None:
        self._memory, self._channels = memory, channels

    def pipes(self, place: int, made: bool) -> list[SharedPipe]:
        """Return the pipes to the other worker at a place; ``made`` at the maker's end."""
        pipes = []
        for channel in range(self._channels):
            at = 2 * (place * self._channels + channel)
            down, up = (self._ring(at + way) for way in range(2))
            pipes.append(SharedPipe(down, up) if made else SharedPipe(up, down))
        return pipes

    def _ring(self, number: int) -> Ring:
        return Ring(self._memory, PAGESIZE + number * _ROOM, CAPACITY)


class SharedPipe(Pipe):
    """A pipe of two rings.  Nothing is sealed: whoever can change it can change the worker too."""

    def __init__(self, outgoing: Ring, incoming: Ring) -> None:
        self._outgoing, self._incoming = outgoing, incoming

    def send(self, data: Buffer) -> None:
        self._outgoing.write(data)

    def receive(self, into: memoryview) -> None:
        self._incoming.read_into(into)

    def end(self, how: int = socket.SHUT_RDWR) -> None:
        self._outgoing.end()
        if how != socket.SHUT_WR:
            self._incoming.end()

    def close(self) -> None:
        self.end()


class Offer:
    """A new file for so many other workers, open until they have opened it too."""

    def __init__(self, workers: int, channels: int = CHANNELS) -> None:
        self._number = os.memfd_create(_NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.truncate(self._number, _length(workers, channels))
            fcntl.fcntl(self._number, fcntl.F_ADD_SEALS, _seals())
            nonce = secrets.token_bytes(_NONCE)
            os.pwrite(self._number, nonce, 0)
            self.file = SharedFile(_mapped(self._number, workers, channels), channels)
        except BaseException:
            self.close()
            raise
        self.told = {"process": os.getpid(), "number": self._number, "nonce": nonce.hex()}
        """What the others need to open it."""

    def close(self) -> None:
        os.close(self._number)


def make_offer(workers: int, channels: int = CHANNELS) -> Offer | None:
    """Return a file for so many others; None if there is none, or the system has no room for it
    now.
    """
    with suppress(OSError):
        return Offer(workers, channels) if workers else None
    return None


def open_offer(told: Any, workers: int, channels: int = CHANNELS) -> SharedFile | None:
    """Return the file of another worker's `Offer.told`; None if it cannot be opened, or is
    another one.
    """
    with suppress(OSError, KeyError, TypeError, ValueError):
        path = f"/proc/{int(told['process'])}/fd/{int(told['number'])}"
        nonce = bytes.fromhex(told["nonce"])
        if not str(Path(path).readlink()).startswith(f"/memfd:{_NAME} "):
            return None
        number = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            sealed = fcntl.fcntl(number, fcntl.F_GET_SEALS) & _seals() == _seals()
            if sealed and os.pread(number, _NONCE, 0) == nonce:
                return SharedFile(_mapped(number, workers, channels), channels)
        finally:
            os.close(number)
    return None


def neighbours(machines: Sequence[str], rank: int, links: Sequence[int]) -> list[int]:
    """Return those on a worker's machine of the workers that it is connected with."""
    return [one for one in links if machines[one] and machines[one] == machines[rank]]


def _length(workers: int, channels: int = CHANNELS) -> int:
    return PAGESIZE + 2 * channels * workers * _ROOM


def _mapped(number: int, workers: int, channels: int) -> NDArray:
    return NDArray.map(f"/proc/self/fd/{number}", (_length(workers, channels),), "uint8", "r+")


def _seals() -> int:
    return fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
