"""Reads the structs that Spark has for images and vectors, in columns of Arrow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sparknet.errors import SparkError

Array = np.ndarray[Any, Any]
IMAGE = frozenset({"height", "width", "nChannels", "data"})
"""The fields of Spark's image struct."""
VECTOR = frozenset({"type", "size", "indices", "values"})
"""The fields of pyspark.ml's vectors."""

_SPARSE = 0
_DEPTHS = {0: "u1", 1: "i1", 2: "<u2", 3: "<i2", 4: "<i4", 5: "<f4", 6: "<f8"}
"""Types of values by the lower bits of OpenCV's numbers for types of images."""


def image_reader(values: Any, name: str) -> Callable[[int], Array]:
    """Return a function that reads a row of Spark's image structs, as height x width x channels.

    Pixels are interleaved, blue first; ``mode`` is OpenCV's number of a type.
    """
    fields = {
        values.type.field(number).name: values.field(number)
        for number in range(values.type.num_fields)
    }
    sizes = [fields[side].to_pylist() for side in ("height", "width", "nChannels")]
    modes = fields["mode"].to_pylist() if "mode" in fields else [0] * len(values)

    def read(row: int) -> Array:
        size = tuple(side[row] for side in sizes)
        if None in size or min(size) < 1:  # as Spark's image source marks what it cannot decode
            origin = fields["origin"][row].as_py() if "origin" in fields else None
            reason = f"is no image that Spark can read: {origin}"
            raise SparkError(
                f"column '{name}': this {reason} (its option dropInvalid leaves it out)"
            )
        kind = np.dtype(_DEPTHS.get((modes[row] or 0) & 7, "u1"))
        data = fields["data"][row].as_buffer() or b""
        if math.prod(size) * kind.itemsize != len(data):
            raise SparkError(f"column '{name}' has an image of {size} with other data than that")
        return np.frombuffer(data, kind).reshape(size)

    return read


def vectors(values: Any, name: str, length: int) -> Array:
    """Convert pyspark.ml's vectors, dense or sparse, by the buffers of Arrow's struct."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = {one: values.field(values.type.get_field_index(one)) for one in VECTOR}
    parts["size"] = parts["size"].cast(pa.int32())  # PySpark 3.5: null if all are dense
    parts["indices"] = parts["indices"].cast(pa.list_(pa.int32()))
    flat = parts["values"].flatten()
    if flat.null_count:
        raise SparkError(f"column '{name}' has nulls inside its lists")
    counts, places = (
        np.asarray(pc.fill_null(pc.list_value_length(parts[one]), 0))
        for one in ("values", "indices")
    )
    sparse = np.asarray(parts["type"]) == _SPARSE
    sizes = np.where(sparse, np.asarray(pc.fill_null(parts["size"], 0)), counts)
    if (odd := sizes[sizes != length]).size:
        raise SparkError(f"column '{name}' has a vector of {odd[0]} values: {length} are wanted")
    numbers = np.asarray(flat)
    if not sparse.any():
        return numbers.reshape(len(values), length)
    at = np.asarray(parts["indices"].flatten())
    if (counts != places)[sparse].any() or places[~sparse].any():
        raise SparkError(f"column '{name}' has a sparse vector of more values or fewer than places")
    if at.size and not 0 <= at.min() <= at.max() < length:
        raise SparkError(
            f"column '{name}' has a sparse vector with a place outside 0..{length - 1}"
        )
    rows = np.zeros((len(values), length), np.float64)
    of_sparse = np.repeat(sparse, counts)
    rows[~sparse] = numbers[~of_sparse].reshape(-1, length)
    rows[np.repeat(np.arange(len(values)), counts)[of_sparse], at] = numbers[of_sparse]
    return rows
