"""How much memory the constants of a model may ask for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from sparknet.errors import clean
from sparknet.graph.untrusted_budget import TooLarge, untrusted_numbers

Array = np.ndarray[Any, Any]

MALFORMED = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError),
    *(RecursionError, TypeError, ValueError),
)
"""What a malformed node makes code fail with."""
_SHARE = 4
"""The part of the memory of a net of unknown origin that its constants may take."""
_WIDEST = 8
"""Bytes of a number."""
_OPEN = ": how much comes out depends on the values"
_WHOLE = ": it computes with whole numbers; QuantizeLinear and DequantizeLinear in pairs are read"
WHY_NO_LAYER = {
    **dict.fromkeys(("Compress", "NonMaxSuppression", "NonZero", "Unique"), _OPEN),
    **dict.fromkeys(("ConvInteger", "DynamicQuantizeLinear", "MatMulInteger"), _WHOLE),
    **dict.fromkeys(("QLinearConv", "QLinearMatMul"), _WHOLE),
}


def problem_of(error: Exception) -> str:
    """Return what a refusal says about a node that `MALFORMED` was raised for."""
    text = str(error).strip().splitlines()
    return clean(text[0]) if text and not isinstance(error, KeyError) else f"is malformed ({error})"


def most_numbers() -> int:
    """Numbers of a constant that is not in the file, if what it is made from is not larger."""
    return untrusted_numbers() * 4 // _SHARE // _WIDEST


class Room:
    """What the constants that a model computes may take, all together."""

    def __init__(self, inputs: Iterable[Array], trusted: bool) -> None:
        most = untrusted_numbers() * 4 // _SHARE + 8 * sum(one.nbytes for one in inputs)
        self._left = 1 << 62 if trusted else most

    def take(self, results: Iterable[Array], inputs: Sequence[Array | None]) -> None:
        """Count the result's bytes; a view of a constant takes none."""
        arrays = [one for one in inputs if one is not None]
        self._left -= sum(
            one.nbytes
            for one in results
            if not any(np.may_share_memory(one, other) for other in arrays)
        )
        if self._left < 0:
            raise TooLarge("the constants that the model computes are too large")


def bounded(shape: Sequence[int], inputs: Sequence[Any] = ()) -> tuple[int, ...]:
    sizes = tuple(int(size) for size in shape)
    if min(sizes, default=0) < 0 or len(sizes) > 32:
        raise ValueError(f"the shape {list(sizes)} is impossible")
    most = max([most_numbers(), *(one.size for one in inputs if one is not None)])
    if prod(sizes) > most:
        raise TooLarge(f"its result has {prod(sizes)} numbers; {most} is the most")
    return sizes


def spread(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of values that are spread over each other."""
    try:
        return np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        texts = " and ".join(str(list(shape)) for shape in shapes)
        raise ValueError(f"{texts} do not fit each other") from None
