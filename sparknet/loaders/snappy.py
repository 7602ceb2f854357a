"""Snappy, the compression of LevelDB's blocks: decoding only."""

from __future__ import annotations

MOST_GROWTH = 32
"""No snappy element makes more than about 22 bytes out of one."""


def decompress(data: bytes) -> bytes:
    """The plain bytes; ValueError where the data is damaged."""
    size, at = _varint(data)
    if size > MOST_GROWTH * len(data):
        raise ValueError(f"{len(data)} bytes cannot hold {size}")
    out = bytearray()
    end = len(data)
    while at < end:
        tag = data[at]
        at += 1
        at = _copy(data, at, tag, out) if tag & 3 else _literal(data, at, tag, out)
        if len(out) > size:
            raise ValueError(f"more than the {size} bytes announced")
    if len(out) != size:
        raise ValueError(f"{len(out)} bytes instead of {size}")
    return bytes(out)


def _varint(data: bytes) -> tuple[int, int]:
    value = 0
    for at in range(min(len(data), 5)):
        value |= (data[at] & 0x7F) << 7 * at
        if data[at] < 0x80:
            return value, at + 1
    raise ValueError("no length")


def _literal(data: bytes, at: int, tag: int, out: bytearray) -> int:
    length = tag >> 2
    if length >= 60:
        extra = length - 59
        if at + extra > len(data):
            raise ValueError("a literal is cut short")
        length = int.from_bytes(data[at : at + extra], "little")
        at += extra
    length += 1
    if at + length > len(data):
        raise ValueError("a literal is cut short")
    out += data[at : at + length]
    return at + length


def _copy(data: bytes, at: int, tag: int, out: bytearray) -> int:
    kind = tag & 3
    extra = (0, 1, 2, 4)[kind]
    if at + extra > len(data):
        raise ValueError("a copy is cut short")
    offset = int.from_bytes(data[at : at + extra], "little")
    if kind == 1:
        offset |= tag >> 5 << 8
        length = (tag >> 2 & 7) + 4
    else:
        length = (tag >> 2) + 1
    start = len(out) - offset
    if offset == 0 or start < 0:
        raise ValueError(f"a copy from {offset} bytes back, behind {len(out)}")
    if offset >= length:
        out += out[start : start + length]
    else:
        piece = bytes(out[start:])
        out += (piece * (length // offset + 1))[:length]
    return at + extra
