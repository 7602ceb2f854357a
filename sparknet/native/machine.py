"""What this machine can do with the threads that a native call may use."""

from __future__ import annotations

from dataclasses import dataclass

from sparknet.native.core import check, ffi, lib, threads


@dataclass(frozen=True)
class Machine:
    """Limits, measured: float32 operations and bytes of memory a second."""

    threads: int
    operations: float
    bytes: float


def measure_machine() -> Machine:
    """The best of several short runs; it takes a second or two."""
    out = ffi.new("double[2]")
    check(lib.sn_measure_arithmetic(out))
    check(lib.sn_measure_memory(out + 1))
    return Machine(threads(), out[0], out[1])
