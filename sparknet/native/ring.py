"""Rings: bytes from one process to another through memory that both have mapped.

native/include/sparknet/ring.h
"""

from __future__ import annotations

from sparknet.errors import ArrayError
from sparknet.native.core import check, ffi, lib
from sparknet.native.ndarray import NDArray

_SLICE = 100
"""Milliseconds of waiting after which Python handles its signals."""


def ring_bytes(capacity: int) -> int:
    """Return the bytes of memory that a ring for so many bytes needs."""
    size: int = lib.sn_ring_bytes(capacity)
    return size


class Ring:
    """One side of a ring: it writes or it reads, from one thread at a time."""

    def __init__(self, memory: NDArray, begin: int, capacity: int) -> None:
        if not 0 <= begin <= memory.nbytes - ring_bytes(capacity):
            raise ArrayError(f"{memory.nbytes} bytes have no room for a ring at {begin}")
        self._memory = ffi.from_buffer(memory.numpy())
        self._ring = ffi.new("sn_ring *")
        check(lib.sn_ring_open(self._ring, self._memory + begin, capacity))
        self._state = ffi.new("sn_ring_state *")

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write all bytes; BrokenPipeError if the ring has ended."""
        with ffi.from_buffer(data) as source:
            at, size = 0, len(source)
            while at < size:
                at += lib.sn_ring_write(self._state, self._ring, source + at, size - at, _SLICE)
                if at < size and self._ended():
                    raise BrokenPipeError("it takes no more bytes")

    def read_into(self, into: memoryview) -> None:
        """Fill the memory; EOFError if the ring ends before."""
        with ffi.from_buffer(into) as target:
            at, size = 0, len(target)
            while at < size:
                at += lib.sn_ring_read(self._state, self._ring, target + at, size - at, _SLICE)
                if at < size and self._ended():
                    raise EOFError("it closed the connection")

    def _ended(self) -> bool:
        if self._state[0] == lib.SN_RING_BROKEN:
            raise OSError("it damaged the memory that it shares with this worker")
        return bool(self._state[0] == lib.SN_RING_ENDED)

    def end(self) -> None:
        """End it for both sides, and wake whoever waits; what was written can still be read."""
        lib.sn_ring_end(self._ring)
