"""Files mapped into memory that others may cut short: what is lost reads as zeros, and is noticed.

native/ndarray/guard.c
"""

from __future__ import annotations

from mmap import mmap
from weakref import finalize

from sparknet.errors import FileError
from sparknet.native.core import ffi, lib


class Guard:
    """Of one mapped file, as long as anybody looks at it."""

    def __init__(self, memory: mmap, path: object) -> None:
        self.path = path
        self._memory = memory
        self._cut = False
        with ffi.from_buffer(memory) as buffer:
            self._number = lib.sn_guard_pages(buffer, len(memory))
        self._unguard = finalize(memory, lib.sn_unguard_pages, self._number)

    def check(self) -> None:
        """FileError if the file no longer has what was read of it since it was opened."""
        # What grows back does not bring the values back.
        self._cut = self._cut or self._memory.size() < len(self._memory)
        if self._cut or lib.sn_pages_lost(self._number):
            raise FileError(self.path, "was cut short while it was read, or its disk failed")

    def close(self) -> None:
        """Unmap the file; BufferError where somebody still looks at it."""
        self._memory.close()
        self._unguard()
