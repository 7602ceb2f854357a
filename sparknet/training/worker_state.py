"""A file of a snapshot: JSON and arrays.

::

    8 bytes   SNSTATE2
    8 bytes   length of the JSON, little-endian
    JSON      {"numbers": …, "arrays": {name: digest, …}, "stored": [[digest, elements], …]}, and
              spaces up to a multiple of 64
    arrays    those stored, float32, little-endian, one after the other

An array is named by its digest, so that one which several workers hold is stored once.  Versions
before wrote SNSTATE1: each file stores all its arrays, ``"arrays": [[name, elements], …]``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.native import NDArray
from sparknet.training.store import Buffer

Json = dict[str, Any]
Values = Any
"""An array of float32 out of a file."""

FIRST, MAGIC = b"SNSTATE1", b"SNSTATE2"
FRONT = len(MAGIC) + 8
ALIGNED = 64
DIGEST = 32
FLOAT = np.dtype("<f4")


@dataclass(frozen=True)
class StateFile:
    """What a file holds."""

    numbers: Json = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    """The arrays by name, as digests; as names in a file of an earlier version."""
    stored: dict[str, Values] = field(default_factory=dict)
    """Arrays by digest."""


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def digest_of(parts: Sequence[Any]) -> str:
    total = blake2b(digest_size=DIGEST)
    for part in parts:
        total.update(part)
    return total.hexdigest()


def floats(array: Any) -> memoryview:
    """The bytes of an array as they are stored."""
    values = np.asarray(array).astype(FLOAT, copy=False)
    return values.data.cast("B") if values.size else memoryview(b"")


def packed(
    numbers: Json, arrays: Mapping[str, str], stored: Mapping[str, NDArray]
) -> tuple[list[Buffer], str]:
    """A file's parts, and its digest: that of the front, which names those of the arrays."""
    listed = [[digest, array.size] for digest, array in stored.items()]
    text = canonical({"numbers": numbers, "arrays": dict(arrays), "stored": listed})
    text += b" " * (-(FRONT + len(text)) % ALIGNED)
    front = MAGIC + len(text).to_bytes(8, "little") + text
    return [front, *map(floats, stored.values())], digest_of([front])


def parsed(path: str, data: memoryview, digest: Any) -> StateFile | None:
    """What a file holds; None if it is not what was written, FileError if that was no such file."""
    begins = bytes(data[: len(MAGIC)])
    end = FRONT + int.from_bytes(data[len(MAGIC) : FRONT], "little")
    of_first = begins == FIRST and digest_of([data]) == digest
    if not of_first and (end > len(data) or digest_of([data[:end]]) != digest):
        return None
    try:
        header = json.loads(bytes(data[FRONT:end]))
        if of_first:
            stored = _cut(data, end, header["arrays"])
            return StateFile(dict(header["numbers"]), {name: name for name in stored}, stored)
        stored = _cut(data, end, header["stored"])
        if begins != MAGIC:
            raise ValueError("it begins otherwise")
        found = StateFile(dict(header["numbers"]), dict(header["arrays"]), stored)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise FileError(path, f"is no worker's state: {error}") from error
    whole = all(digest_of([floats(values)]) == name for name, values in stored.items())
    return found if whole else None


def _cut(data: memoryview, begin: int, listed: Any) -> dict[str, Values]:
    found = {}
    for name, size in listed:
        end = begin + FLOAT.itemsize * size
        found[str(name)] = np.frombuffer(data[begin:end], FLOAT, count=size)
        begin = end
    return found
