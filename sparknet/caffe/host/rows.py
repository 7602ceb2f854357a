"""Blobs as rows of vectors; tops whose number of rows only the forward pass knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob


def rows_of(values: Any) -> Any:
    """A view as rows, one for each place of the first axis."""
    return values.reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))


def put_rows(top: Blob, rows: Any) -> None:
    """Give a top as many rows as there are, each of its own shape."""
    shape = (len(rows), *tuple(top.shape)[1:])
    if tuple(top.shape) != shape:
        top.reshape(*shape)
    top.data[...] = rows.reshape(shape)
