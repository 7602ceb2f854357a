"""Snappy, the compression of LevelDB's blocks: decoding only."""

from __future__ import annotations

from sparknet.native.decoding import snappy_decode

LARGEST = 1 << 28
MOST_GROWTH = 32
"""No snappy element makes more than about 22 bytes out of one."""


def decompress(data: bytes) -> bytes:
    """The plain bytes; ValueError where the data is damaged, or makes more than 256 MiB."""
    size, at = _varint(data)
    if size > MOST_GROWTH * len(data):
        raise ValueError(f"{len(data)} bytes cannot hold {size}")
    if size > LARGEST:
        raise ValueError(f"it unpacks to {size} bytes")
    return snappy_decode(data[at:], size)


def _varint(data: bytes) -> tuple[int, int]:
    value = 0
    for at in range(min(len(data), 5)):
        value |= (data[at] & 0x7F) << 7 * at
        if data[at] < 0x80:
            return value, at + 1
    raise ValueError("no length")
