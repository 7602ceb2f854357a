"""Codecs: differences of weights in fewer bytes, and what was rounded off kept for later.

Error feedback (Seide et al., 2014): what a code loses is added to what is coded next, so that
nothing is lost in the long run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np

from sparknet.native import NDArray

Codec = Literal["fp16", "int8"]
Array = np.ndarray[Any, Any]
Span = tuple[int, int]

BLOCK = 256
"""Numbers that share a scale in int8."""


class Coder(ABC):
    """Float32 numbers to bytes and back."""

    @abstractmethod
    def length(self, size: int) -> int:
        """Bytes that so many numbers take."""

    @abstractmethod
    def encode(self, values: Array) -> Array: ...

    @abstractmethod
    def decode(self, data: memoryview, size: int) -> NDArray: ...


@final
class HalfCoder(Coder):
    """IEEE half precision; what is beyond it becomes its largest number."""

    _MOST = float(np.finfo(np.float16).max)

    def length(self, size: int) -> int:
        return 2 * size

    def encode(self, values: Array) -> Array:
        return np.clip(values, -self._MOST, self._MOST).astype(np.float16).view(np.uint8)

    def decode(self, data: memoryview, size: int) -> NDArray:
        return NDArray.view(np.frombuffer(data, np.float16, size).astype(np.float32))


@final
class ByteCoder(Coder):
    """Signed bytes, with a float32 scale for each block of 256 numbers."""

    def length(self, size: int) -> int:
        return _blocks(size) * (BLOCK + 4)

    def encode(self, values: Array) -> Array:
        count = _blocks(values.size)
        padded = np.zeros((count, BLOCK), np.float32)
        padded.ravel()[: values.size] = values
        scales = np.abs(padded).max(axis=1, keepdims=True) / np.float32(127)
        with np.errstate(invalid="ignore", divide="ignore"):
            padded /= np.where(scales > 0, scales, np.float32(1))
            codes = np.rint(padded, out=padded).astype(np.int8)
        return np.concatenate([scales.view(np.uint8).ravel(), codes.view(np.uint8).ravel()])

    def decode(self, data: memoryview, size: int) -> NDArray:
        count = _blocks(size)
        scales = np.frombuffer(data, np.float32, count)[:, None]
        codes = np.frombuffer(data, np.int8, count * BLOCK, 4 * count).reshape(count, BLOCK)
        return NDArray.view((codes * scales).ravel()[:size])


CODERS: dict[str, Coder] = {"fp16": HalfCoder(), "int8": ByteCoder()}


class Errors:
    """What coding has lost so far: of this worker's numbers, and of the means that it owns."""

    def __init__(self, size: int, mine: Span) -> None:
        self.own = np.zeros(size, np.float32)
        self.mean = np.zeros(mine[1] - mine[0], np.float32)

    def encode_all(self, coder: Coder, buffer: NDArray, spans: Sequence[Span]) -> list[memoryview]:
        """The slices of a buffer."""
        values = np.asarray(buffer)
        return [_encoded(coder, values[b:e], self.own[b:e]) for b, e in spans]

    def encode_mean(self, coder: Coder, mean: NDArray) -> memoryview:
        return _encoded(coder, np.asarray(mean), self.mean)


def _encoded(coder: Coder, values: Array, error: Array) -> memoryview:
    """The code of values and what was lost before; ``error`` is what is lost now."""
    wanted = values + error
    data = np.ascontiguousarray(coder.encode(wanted)).data
    np.subtract(wanted, np.asarray(coder.decode(data, len(values))), out=error)
    if not np.isfinite(error).all():  # a number that is none must not come back for ever
        error.fill(0)
    return data


def _blocks(size: int) -> int:
    return -(-size // BLOCK)
