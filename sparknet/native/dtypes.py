"""The element types of an NDArray, as numpy and the native core name them."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import ArrayError
from sparknet.native.core import lib

DTYPES: dict[int, np.dtype[Any]] = {
    lib.SN_FLOAT32: np.dtype(np.float32),
    lib.SN_FLOAT64: np.dtype(np.float64),
    lib.SN_INT32: np.dtype(np.int32),
    lib.SN_UINT8: np.dtype(np.uint8),
    lib.SN_INT8: np.dtype(np.int8),
}
NUMBERS: dict[np.dtype[Any], int] = {dtype: number for number, dtype in DTYPES.items()}


def number_of(dtype: Any) -> int:
    """Return the native core's number for a dtype, in any form that numpy accepts."""
    try:
        return NUMBERS[np.dtype(dtype)]
    except (KeyError, TypeError):
        names = ", ".join(str(dtype) for dtype in NUMBERS)
        raise ArrayError(f"an NDArray holds {names}, not {dtype}") from None


def supported(dtype: np.dtype[Any]) -> bool:
    """Return whether an NDArray can hold elements of this type and byte order as they are."""
    return dtype in NUMBERS
