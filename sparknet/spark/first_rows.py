"""The first rows of a DataFrame, which say what a module is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import DataError, SparkError
from sparknet.spark.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Array = np.ndarray[Any, Any]
Sizes = tuple[int, ...]

_LOOKED_AT = 32
_FEW = 2


def record_sizes(shapes: Mapping[str, Sequence[int | None]] | None) -> dict[str, Sizes]:
    """The shape of a record, of shapes that begin with the records' axis."""
    found = {}
    for name, shape in (shapes or {}).items():
        sizes = tuple(shape)
        if len(sizes) < 2 or any(type(size) is not int or size < 1 for size in sizes[1:]):
            raise SparkError(
                f"shapes['{name}'] is {list(sizes)!r}: the axis of the records and then the sizes "
                "of one are needed, as in [None, 3, 32, 32]"
            )
        found[name] = tuple(int(size or 0) for size in sizes[1:])
    return found


def first_rows(
    data: DataFrame,
    mapping: Mapping[str, str],
    sizes: Mapping[str, Sizes],
    what: str = "the training data",
) -> dict[str, Array]:
    """A few records by argument, in the shapes that a module is given; one job of few rows."""
    for name in sizes:
        if name not in mapping:
            raise SparkError(
                f"shapes name '{name}', which the module is not given: it is given "
                + ", ".join(f"'{one}'" for one in mapping)
            )
    columns = list(dict.fromkeys(mapping.values()))
    rows = data.select(*map(quoted, columns)).limit(_LOOKED_AT).collect()
    if not rows:
        raise DataError(f"{what} has no records")
    held = [row for row in rows if all(value is not None for value in row)] or rows[:1]
    held = (held * _FEW)[:_FEW] if len(held) < _FEW else held[:_FEW]
    places = {column: number for number, column in enumerate(columns)}
    return {
        name: np.stack([_array(row[places[column]], name, column, sizes.get(name)) for row in held])
        for name, column in mapping.items()
    }


def _array(value: Any, name: str, column: str, sizes: Sizes | None) -> Array:
    if value is None:
        raise SparkError(f"column '{column}' is null: fill such rows, or filter them out")
    if isinstance(value, (bytes, bytearray)):
        if sizes is None:
            raise SparkError(
                f"column '{column}' holds bytes: say what they are with "
                f"shapes={{'{name}': [None, 3, 32, 32]}}, say"
            )
        return np.zeros(sizes, np.uint8)
    if hasattr(value, "nChannels"):
        return np.zeros(sizes or (value.nChannels, value.height, value.width), np.uint8)
    if hasattr(value, "toArray"):
        value = value.toArray()
    try:
        made = np.asarray(value)
    except ValueError as error:
        raise SparkError(f"column '{column}' has rows of lists of several lengths") from error
    if made.dtype.kind not in "fiub":
        made = made.astype(np.float64)  # decimals
    if sizes is None:
        return made
    if made.size != int(np.prod(sizes)):
        raise SparkError(
            f"column '{column}' has {made.size} values per row, but '{name}' takes {sizes}"
        )
    return made.reshape(sizes)
