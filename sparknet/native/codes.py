"""Codes: float32 numbers in fewer bytes.

native/include/sparknet/codes.h
"""

from __future__ import annotations

import numpy as np

from sparknet.errors import ArrayError
from sparknet.native.core import check, ffi, lib
from sparknet.native.ndarray import NDArray

HALVES, BYTES, NIBBLES, SMALL_FLOATS, SPARSE = range(5)

SCALED = 256
"""Numbers that share a scale in `BYTES`, `NIBBLES` and `SMALL_FLOATS`."""
CHUNK, KEPT = 4096, 64
"""`SPARSE` has so many numbers of each chunk."""


def code_length(code: int, size: int) -> int:
    """Return the number of bytes that a code of `size` numbers takes."""
    length: int = lib.sn_code_length(code, size)
    return length


def room(code: int, size: int) -> memoryview:
    """Memory for a code of `size` numbers, with arbitrary contents."""
    return np.empty(code_length(code, size), np.uint8).data


def encode(code: int, values: NDArray, errors: NDArray) -> memoryview:
    """Return the code of values + errors; ``errors`` receives what the code loses."""
    data = room(code, values.size)
    check(lib.sn_encode(ffi.from_buffer(data), code, values._handle, errors._handle))
    return data


def decode(code: int, data: memoryview, into: NDArray) -> None:
    """Decode the numbers of a code."""
    expected = code_length(code, into.size)
    if data.nbytes != expected:
        raise ArrayError(f"the code of {into.size} numbers has {expected} bytes, not {data.nbytes}")
    check(lib.sn_decode(into._handle, code, ffi.from_buffer(data)))
