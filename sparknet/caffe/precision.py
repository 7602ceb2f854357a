"""Which numbers a net multiplies: float32, or bfloat16 or eight bits where the processor can."""

from __future__ import annotations

import warnings
from typing import Literal

from sparknet.errors import SpecError
from sparknet.native import has_bf16, has_int8

Precision = Literal["float32", "tf32", "bf16", "int8"]
PRECISIONS = ("float32", "tf32", "bf16", "int8")

_NEEDS = {
    "bf16": (has_bf16, "AVX512_BF16 or AMX"),
    "int8": (has_int8, "AVX-VNNI, AVX512_VNNI or AMX"),
}


def available(precision: Precision, device: str | None = None) -> Precision:
    """Return the precision that a net gets; warn where the processor has float32 alone."""
    if precision not in PRECISIONS:
        raise SpecError(
            f"precision must be 'float32', 'tf32', 'bf16' or 'int8'; it is {precision!r}"
        )
    if device is not None:
        return precision
    if precision == "tf32":
        raise SpecError("precision='tf32' is for NVIDIA's GPUs: give device='cuda:0' as well")
    has, needed = _NEEDS.get(precision, (bool, ""))
    if needed and not has():
        warnings.warn(
            f"precision={precision!r} needs a processor with {needed}; "
            "this one computes in float32",
            stacklevel=2,
        )
        return "float32"
    return precision
