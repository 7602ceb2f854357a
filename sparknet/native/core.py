"""The raw library and the one check that turns a status into an exception."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import mmap
from typing import Any
from weakref import finalize

from sparknet.errors import ArrayError, FileError, IndexOutOfRange, NativeError, OutOfMemory
from sparknet.native.locate import extension

_extension = extension()
ffi: Any = _extension.ffi
lib: Any = _extension.lib


def check(status: int, path: object = None) -> None:
    """Raises what `status` stands for; `path` is the file that the call was about."""
    if status == lib.SN_OK:
        return
    message: str = ffi.string(lib.sn_message()).decode(errors="replace")
    if status == lib.SN_ERROR_FILE:
        raise FileError(path, message)
    if status == lib.SN_ERROR_ARRAY:
        raise ArrayError(message)
    if status == lib.SN_ERROR_INDEX:
        raise IndexOutOfRange(message)
    if status == lib.SN_ERROR_MEMORY:
        raise OutOfMemory(message)
    raise NativeError(message)


def version() -> str:
    """Return the version of the native core."""
    text: str = ffi.string(lib.sn_version()).decode()
    return text


def onednn_version() -> tuple[int, int, int]:
    """Return the version of the oneDNN that is loaded; zeros in a build without it."""
    numbers = ffi.new("int[3]")
    lib.sn_onednn_version(numbers, numbers + 1, numbers + 2)
    return numbers[0], numbers[1], numbers[2]


def onednn() -> str:
    """Return the version as text: "3.2.1", or "none" in a build without oneDNN."""
    numbers = onednn_version()
    return ".".join(map(str, numbers)) if any(numbers) else "none"


def onednn_isa() -> str:
    """Return the newest instructions that oneDNN uses here; "" if it does not say."""
    text: str = ffi.string(lib.sn_onednn_isa()).decode()
    return text


def threads() -> int:
    """Return how many threads a native call may use; 1 in a child that was forked late."""
    count: int = lib.sn_threads()
    return count


def has_int8() -> bool:
    """Return whether the processor multiplies numbers of eight bits."""
    return bool(lib.sn_has_int8())


def has_bf16() -> bool:
    """Return whether the processor multiplies numbers of bfloat16."""
    return bool(lib.sn_has_bf16())


def set_threads(count: int) -> None:
    """Sets how many threads a native call may use; at first OMP_NUM_THREADS or the processors."""
    check(lib.sn_set_threads(min(max(count, -1), 1 << 30)))


@dataclass(frozen=True)
class Machine:
    """Limits, measured: operations and bytes of memory a second."""

    threads: int
    operations: float
    """In float32."""
    bf16_operations: float
    """On factors of bfloat16; 0 where the processor has none."""
    bytes: float


def measure_machine() -> Machine:
    """Return the best of several short runs; it takes a second or two."""
    out = ffi.new("double[3]")
    check(lib.sn_measure_arithmetic(out))
    check(lib.sn_measure_bf16(out + 1))
    check(lib.sn_measure_memory(out + 2))
    return Machine(threads(), *out)


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
