"""Tops whose number of rows only the forward pass knows."""

from __future__ import annotations

from typing import Any

from sparknet.caffe.blob import Blob


def put_rows(top: Blob, rows: Any) -> None:
    """Give a top as many rows as there are, each of its own shape."""
    shape = (len(rows), *tuple(top.shape)[1:])
    if tuple(top.shape) != shape:
        top.reshape(*shape)
    top.data[...] = rows.reshape(shape)
