"""Output: a blob as a column of a DataFrame, with the column's type and values."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.layers import LAYERS, Shape
from sparknet.net.fed import FedNet

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Output:
    """A blob, and the column of its values."""

    blob: str
    column: str
    is_number: bool = False
    """Whether it has one value per record."""
    axis: int = 0
    """The axis of the records in the blob."""
    is_list: bool = False
    """Whether a record has any number of rows, each with its record's index, as the rows (label,
    score, xmin, ymin, xmax, ymax) of a DetectionOutput."""

    def spark_type(self) -> Any:
        """The column's type, which does not depend on the data."""
        from pyspark.sql.types import ArrayType, FloatType

        if self.is_number:
            return FloatType()
        values = ArrayType(FloatType(), False)
        return ArrayType(values, False) if self.is_list else values

    def rows(self, made: Array, count: int) -> Array:
        """One row per record; SparkError if a value is not finite."""
        if not np.isfinite(made).all():
            odd = made[~np.isfinite(made)][0]
            raise SparkError(
                f"blob '{self.blob}' became {odd:g}, though its record has finite values"
            )
        if self.is_list:
            return made.reshape(-1, made.shape[-1])
        if made.ndim <= self.axis or made.shape[self.axis] != count:
            raise SparkError(f"blob '{self.blob}' became {made.shape} for {count} records")
        return np.ascontiguousarray(np.moveaxis(made, self.axis, 0)).reshape(count, -1)

    def values(self, rows: Array, count: int) -> pa.Array:
        """The column of ``count`` records."""
        import pyarrow as pa

        if self.is_number:
            return pa.array(rows[:, 0])
        if not self.is_list:
            return _lists(rows)
        # A row with label -1 means a record without detections.
        found = rows[rows[:, 1] >= 0]
        found = found[np.argsort(found[:, 0], kind="stable")]
        ends = np.searchsorted(found[:, 0], np.arange(count + 1)).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(ends), _lists(found[:, 1:]))


def _lists(rows: Array) -> pa.Array:
    import pyarrow as pa

    count, length = rows.shape
    ends = np.arange(0, (count + 1) * length, length, dtype=np.int32)[: count + 1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(rows.ravel()))


def find_outputs(tested: FedNet, columns: dict[str, str]) -> list[Output]:
    """The outputs for these blobs and columns, by the net's description."""
    shapes, axes = tested.layout()
    return [
        Output(name, column, is_list=True)
        if _is_numbered(tested, name)
        else _output(tested, name, column, shapes, axes)
        for name, column in columns.items()
    ]


def _is_numbered(tested: FedNet, name: str) -> bool:
    made_by = [layer for layer in tested.described.layer if name in layer.top]
    return any(layer.type in LAYERS and LAYERS[layer.type].numbered for layer in made_by)


def _output(
    tested: FedNet, name: str, column: str, shapes: dict[str, Shape], axes: dict[str, int]
) -> Output:
    counts = {entry.batch for entry in tested.entries}
    shape, axis = shapes[name], axes.get(name)
    if axis is None or shape[axis] not in counts:
        told = " or ".join(map(str, sorted(counts)))
        raise SparkError(f"blob '{name}' is {shape}: no row for each of {told} records")
    return Output(name, column, prod(shape) == shape[axis], axis)
