"""Which numbers a net multiplies: float32, or bfloat16 where the processor has it."""

from __future__ import annotations

import warnings

from sparknet.errors import SpecError
from sparknet.native import has_bf16

PRECISIONS = ("float32", "bf16")


def available(precision: str) -> str:
    """The precision that a net gets; without bfloat16 it is float32, with a warning."""
    if precision not in PRECISIONS:
        raise SpecError(f"precision must be 'float32' or 'bf16'; it is {precision!r}")
    if precision == "bf16" and not has_bf16():
        warnings.warn(
            "precision='bf16' needs a processor with AVX512_BF16 or AMX; "
            "this one computes in float32",
            stacklevel=2,
        )
        return "float32"
    return precision
