"""The check sum in LevelDB's files."""

from __future__ import annotations

from sparknet.native.decoding import crc32c


def masked(data: bytes) -> int:
    """As LevelDB stores it: turned by 15 bits, plus a constant (LevelDB: util/crc32c.h)."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
