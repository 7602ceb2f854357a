"""Damage to files: of bytes, of stretches, of numbers, of words."""

import random
import re
from collections.abc import Callable

LIMIT = 1 << 16
ODD_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1)
WORDS = (
    b"{", b"}", b"<", b">", b"[", b"]", b":", b",", b";", b'"', b"'", b"\\", b"#", b"\n", b"\0",
    b"-", b"+", b"0x", b"1e999", b"nan", b"inf", b"-1", b"99999999999999999999", b"true",
    b"layer {", b"layers {", b"layers { layer {", b"blobs { data: 1 }", b"\xff", b"\xed\xa0\x80",
    b"type: 4", b"type: \"Input\"", b"input: \"x\"", b"input_dim: 3", b"\\777", b"\\x", b"\\u0000",
)  # fmt: skip
VARINTS = (b"\x80" * 9 + b"\x01", b"\xff" * 10, b"\xff" * 9 + b"\x01", b"\xff\xff\xff\xff\x07")
TAGS = (
    b"\xa2\x06",
    b"\x12",
    b"\x0a",
    b"\x2a",
    b"\x2d",
    b"\x35",
    b"\x3a",
    b"\x41",
    b"\x42",
    b"\x0b",
)


def mutated(rng: random.Random, data: bytes, other: bytes, text: bool) -> bytes:
    """One to eight small disasters."""
    kinds = _TEXT if text else _BINARY
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        data = rng.choice(kinds)(rng, data, other)[:LIMIT]
    return data


def _flip(rng: random.Random, data: bytes, other: bytes) -> bytes:
    out = bytearray(data or b"\0")
    out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _byte(rng: random.Random, data: bytes, other: bytes) -> bytes:
    out = bytearray(data or b"\0")
    out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _truncate(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _remove(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + data[start + rng.randrange(1, 32) :]


def _repeat(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    part = data[start : start + rng.randrange(1, 64)]
    return data[:start] + part * rng.choice((2, 3, 100, 2000)) + data[start:]


def _splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, from_ = rng.randrange(len(data) + 1), rng.randrange(len(other) + 1)
    return data[:start] + other[from_ : from_ + rng.randrange(200)] + data[start:]


def _number(rng: random.Random, data: bytes, other: bytes) -> bytes:
    width = rng.choice((1, 2, 4, 8))
    value = rng.choice(ODD_NUMBERS) & (1 << 8 * width) - 1
    start = rng.randrange(len(data) + 1)
    return data[:start] + value.to_bytes(width, "little") + data[start + width :]


def _varint(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(VARINTS) + data[start + rng.choice((0, 1)) :]


def _tag(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(TAGS) * rng.choice((1, 1, 50)) + data[start:]


def _word(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice(WORDS) * rng.choice((1, 1, 1, 5000)) + data[start:]


def _line(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """A line of another file, put, moved or taken."""
    lines, donor = data.splitlines(keepends=True), other.splitlines(keepends=True)
    at = rng.randrange(len(lines) + 1)
    lines[at : at + rng.randrange(3)] = [rng.choice(donor)] if donor and rng.random() < 0.7 else []
    return b"".join(lines)


def _value(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Another value behind some name."""
    found = list(re.finditer(rb":\s*(\S+)", data))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start(1)] + rng.choice(WORDS) + data[match.end(1) :]


_Mutation = Callable[[random.Random, bytes, bytes], bytes]
_BYTES: tuple[_Mutation, ...] = (_flip, _byte, _truncate, _remove, _repeat, _splice)
_BINARY: tuple[_Mutation, ...] = (*_BYTES, _number, _number, _varint, _tag)
_TEXT: tuple[_Mutation, ...] = (*_BYTES, _word, _line, _line, _value, _value)
