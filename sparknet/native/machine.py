"""What this machine can do with the threads that a native call may use."""

from __future__ import annotations

from dataclasses import dataclass

from sparknet.native.core import check, ffi, lib, threads


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
