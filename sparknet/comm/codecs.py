"""Codecs: differences of weights in fewer bytes, with error feedback.

Error feedback (Seide et al., 2014) adds the rounding error of one message to the next one, so that
nothing is lost in the long run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sparknet.native import NDArray
from sparknet.native.codes import (
    BYTES,
    HALVES,
    NIBBLES,
    SMALL_FLOATS,
    SPARSE,
    decode,
    encode,
    room,
)

Codec = Literal["fp16", "int8", "int4", "fp4", "sparse"]
Span = tuple[int, int]

CODES: dict[str, int] = {
    "fp16": HALVES,
    "int8": BYTES,
    "int4": NIBBLES,
    "fp4": SMALL_FLOATS,
    "sparse": SPARSE,
}
"""Codes by name: half precision; bytes, and integers and floats of four bits, each with a scale for
256 numbers; of 4,096 numbers the 64 largest in two bits (SparseLoCo, arXiv 2508.15706)."""

OWN_ERRORS, MEAN_ERRORS = "codec's own errors", "codec's errors of means"
"""The names of rounding errors in snapshots."""


def of_parts(name: str, parts: int) -> list[str]:
    """Return the names of the errors of so many parts."""
    return [f"{name} {part}" if part else name for part in range(parts)]


class Coder:
    """Codes the buffers of one size, and stores the rounding errors so far.

    ``own`` are the errors of this worker's numbers, ``mean`` those of the means that it owns.
    """

    def __init__(self, codec: Codec, size: int, mine: Span) -> None:
        self.codec: Codec = codec
        self._code = CODES[codec]
        self.own = NDArray.zeros((size,))
        self.mean = NDArray.zeros((mine[1] - mine[0],))

    def copy_from(self, other: Coder) -> Coder:
        """Take over another one's errors."""
        self.own.copy_from(other.own)
        self.mean.copy_from(other.mean)
        return self

    def room(self, size: int) -> memoryview:
        """Memory for the code of ``size`` numbers."""
        return room(self._code, size)

    def encode_all(self, buffer: NDArray, spans: Sequence[Span]) -> list[memoryview]:
        """Encode the slices of a buffer."""
        return [encode(self._code, buffer[b:e], self.own[b:e]) for b, e in spans]

    def encode_mean(self, mean: NDArray) -> memoryview:
        return encode(self._code, mean, self.mean)

    def decode(self, data: memoryview, into: NDArray) -> NDArray:
        decode(self._code, data, into)
        return into
