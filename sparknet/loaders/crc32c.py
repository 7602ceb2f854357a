"""CRC-32C, the check sum in LevelDB's files (RFC 3720, section 12.1)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

POLYNOMIAL = 0x82F63B78
LANE = 64
"""Bytes that are taken one after the other; lanes of so many are taken side by side."""

Words = np.ndarray[Any, np.dtype[np.uint32]]


def crc32c(data: bytes) -> int:
    """The check sum of some bytes.

    The sum is linear: lanes are summed apart, and then joined two by two.
    """
    if len(data) < 4:
        return _short(data)
    lanes = 1 << (-(-len(data) // LANE) - 1).bit_length()
    padded = np.zeros(lanes * LANE, np.uint8)
    # Zeros in front change nothing.  Inverting the first four bytes stands for starting from ones.
    start = len(padded) - len(data)
    padded[start:] = np.frombuffer(data, np.uint8)
    padded[start : start + 4] ^= 0xFF
    sums: Words = np.zeros(lanes, np.uint32)
    for column in padded.reshape(lanes, LANE).T:
        sums = _table()[(sums ^ column) & 0xFF] ^ sums >> 8
    size = LANE
    while len(sums) > 1:
        sums = _followed(sums[0::2], size) ^ sums[1::2]
        size *= 2
    return int(sums[0]) ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """As LevelDB stores it: turned by 15 bits, plus a constant (LevelDB: util/crc32c.h)."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _short(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = int(_table()[(crc ^ byte) & 0xFF]) ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> Words:
    """What each byte adds."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = table >> 1 ^ np.where(table & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    return table


def _followed(sums: Words, size: int) -> Words:
    """The sums when `size` zeros follow."""
    parts = _zeros(size)
    joined: Words = parts[0][sums & 0xFF] ^ parts[1][sums >> 8 & 0xFF]
    joined ^= parts[2][sums >> 16 & 0xFF]
    joined ^= parts[3][sums >> 24]
    return joined


@cache
def _zeros(size: int) -> Words:
    """What `size` zeros make of each value of each of a sum's four bytes."""
    if size > LANE:
        return _followed(_zeros(size // 2), size // 2)
    bytes_ = np.arange(256, dtype=np.uint32)
    sums = np.stack([bytes_ << shift for shift in (0, 8, 16, 24)]).astype(np.uint32)
    for _ in range(size):
        sums = _table()[sums & 0xFF] ^ sums >> 8
    return sums
