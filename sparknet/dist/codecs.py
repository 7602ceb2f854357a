"""Codecs: differences of weights in fewer bytes, and what was rounded off kept for later.

Error feedback (Seide et al., 2014): what a code loses is added to what is coded next, so that
nothing is lost in the long run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sparknet.native import NDArray
from sparknet.native.codes import BYTES, HALVES, decode, encode, room

Codec = Literal["fp16", "int8"]
Span = tuple[int, int]

CODES: dict[str, int] = {"fp16": HALVES, "int8": BYTES}
"""The names of codes: half precision, and signed bytes with a scale for each 256 numbers."""


class Coder:
    """Codes the buffers of one size, and keeps what coding has lost so far.

    That is of this worker's numbers (``own``), and of the means that it owns (``mean``).
    """

    def __init__(self, codec: Codec, size: int, mine: Span) -> None:
        self._code = CODES[codec]
        self.own = NDArray.zeros((size,))
        self.mean = NDArray.zeros((mine[1] - mine[0],))

    def room(self, size: int) -> memoryview:
        """Memory for the code of so many numbers."""
        return room(self._code, size)

    def encode_all(self, buffer: NDArray, spans: Sequence[Span]) -> list[memoryview]:
        """The slices of a buffer."""
        return [encode(self._code, buffer[b:e], self.own[b:e]) for b, e in spans]

    def encode_mean(self, mean: NDArray) -> memoryview:
        return encode(self._code, mean, self.mean)

    def decode(self, data: memoryview, into: NDArray) -> NDArray:
        decode(self._code, data, into)
        return into
