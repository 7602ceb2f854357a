"""Copies named arrays into blobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.errors import SpecError
from sparknet.layers.layer import shape_text


def fill(
    blobs: Mapping[str, Blob],
    given: Mapping[str, Any],
    expected: Sequence[str],
    what: str,
    gradient: bool = False,
) -> None:
    """Write arrays for exactly the ``expected`` blobs, each of its blob's batch size."""
    if set(given) != set(expected):
        raise SpecError(
            f"the {what}s given ({', '.join(sorted(given))}) are not those of the net "
            f"({', '.join(sorted(expected))})"
        )
    for name, values in given.items():
        blob, shape = blobs[name], np.shape(values)
        if shape[:1] != tuple(blob.shape)[:1]:
            raise SpecError(
                f"{what} '{name}' is {shape_text(shape)}, not batch sized: "
                f"the blob is {shape_text(blob.shape)}"
            )
        try:
            (blob.diff if gradient else blob.data)[...] = values
        except ValueError as error:
            raise SpecError(
                f"{what} '{name}' is {shape_text(shape)}; the blob is {shape_text(blob.shape)}"
            ) from error
