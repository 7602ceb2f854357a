"""Rows that a program holds, as an Arrow batch, and results as the program wants them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import DataError
from sparknet.loaders.image_decoding import LARGEST_FILE
from sparknet.loaders.records import match_classes
from sparknet.net.feed import check_numbers
from sparknet.net.model import InputShape, ModuleInput
from sparknet.predict.input_columns import plain
from sparknet.proto.byte_source import read_file
from sparknet.proto.suggest import did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Array = np.ndarray[Any, Any]


def batch_of(
    rows: Any, mapping: Mapping[str, str], entries: Mapping[str, InputShape], texts: bool
) -> pa.RecordBatch:
    """Return the columns of ``mapping`` (input → column) as an Arrow batch.

    ``rows`` is a data frame, a dict of columns, or the values of the only input.
    """
    import pyarrow as pa

    if is_frame(rows) or isinstance(rows, Mapping):
        names = list(rows)
        for name, column in mapping.items():
            if column not in names:
                raise DataError(
                    f"the rows have no column '{column}' for the net's input '{name}': they have "
                    f"{names}; say which with columns={{'{name}': …}}"
                )
        values = {name: rows[column] for name, column in mapping.items()}
    elif len(mapping) != 1:
        raise DataError(
            f"the net has the inputs {list(mapping)}: give a data frame, or a dict with a column "
            "for each"
        )
    else:
        values = dict.fromkeys(mapping, rows)
    arrays = {
        name: arrow(values[name], f"column '{column}'", entries[name], texts)
        for name, column in mapping.items()
    }
    counts = {mapping[name]: len(column) for name, column in arrays.items()}
    if len(set(counts.values())) > 1:
        listing = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise DataError(f"the columns differ in their number of rows: {listing}")
    columns = {plain(mapping[name]): column for name, column in arrays.items()}
    return pa.RecordBatch.from_pydict(columns)


def arrow_batch(columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return columns of numbers as an Arrow batch."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {
            plain(name): arrow(values, f"column '{name}'", ModuleInput(()), False)
            for name, values in columns.items()
        }
    )


def numbered(values: Any, labels: Sequence[str]) -> Any:
    """Return a column of the truth; names of classes become their numbers."""
    names = np.asarray(values)
    if names.dtype.kind not in "OUS" or not all(isinstance(name, str) for name in names.flat):
        return values
    places, inverse = np.unique(names, return_inverse=True)
    numbers, _ = match_classes(places.tolist(), labels, "data", learns=False)
    return inverse if numbers is None else np.array(numbers)[inverse]


def with_features(
    rows: Any, mapping: Mapping[str, str], features: Mapping[str, Sequence[str]]
) -> Any:
    """Return rows with a column for each input whose record is several columns of numbers."""
    if not is_frame(rows) and not isinstance(rows, Mapping):
        return rows
    added, there = {}, list(rows)
    for name, parts in features.items():
        column = mapping.get(name)
        if column is None or column in there:
            continue
        check_features(name, parts, there)
        for part in parts:
            check_numbers(part, np.asarray(rows[part]))
        added[column] = np.stack([np.asarray(rows[part], np.float32) for part in parts], 1)
    return {**{name: rows[name] for name in there}, **added} if added else rows


def check_features(name: str, parts: Sequence[str], there: Sequence[str]) -> None:
    """Raise DataError if rows lack one of the columns that are an input's record together."""
    for part in parts:
        if part not in there:
            raise DataError(
                f"the rows have no column '{part}', one of the {len(parts)} features of the net's "
                f"input '{name}'{did_you_mean(part, there)}"
            )


def is_frame(rows: Any) -> bool:
    """Return whether rows are a data frame of pandas."""
    return hasattr(rows, "columns") and hasattr(rows, "index")


def arrow(values: Any, what: str, entry: InputShape, texts: bool) -> pa.Array:
    """Return a column of numbers, arrays, bytes, pictures' paths or texts."""
    import pyarrow as pa

    if isinstance(values, (bytes, bytearray, str, os.PathLike)):
        values = [values]
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _numbers(values, what, entry)
    cells = _cells(values, what)
    first = next((cell for cell in cells if not _is_missing(cell)), None)
    if not isinstance(first, Number):
        cells = [None if _is_missing(cell) else cell for cell in cells]
    if isinstance(first, np.ndarray) and first.dtype.kind in "biuf":
        return _arrays(cells, what, entry)
    if isinstance(first, (str, os.PathLike)) and not texts:
        cells = [None if cell is None else _content(cell, what) for cell in cells]
    try:
        return pa.array(cells)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{what} holds values of no one kind: {reason}") from error


def _cells(values: Any, what: str) -> list[Any]:
    try:
        return list(values)
    except TypeError as error:
        kind = type(values).__name__
        raise DataError(
            f"{what} is {kind}: an array, a list or a column of a data frame is needed"
        ) from error


def _is_missing(cell: Any) -> bool:
    """Return whether a row has no value: pandas has NaN for one beside arrays and texts, too."""
    return cell is None or (isinstance(cell, float) and cell != cell)


def _arrays(cells: Sequence[Any], what: str, entry: InputShape) -> pa.Array:
    """Arrays of one shape, and rows without any."""
    import pyarrow as pa

    shapes = {np.shape(cell) for cell in cells if cell is not None}
    if len(shapes) > 1:
        sizes = " and ".join(map(str, sorted(shapes)[:2]))
        raise DataError(f"{what} has rows of the shapes {sizes}: give them one by one")
    blank = np.zeros(shapes.pop(), np.float32)
    rows = _numbers(np.stack([blank if cell is None else cell for cell in cells]), what, entry)
    missing = [cell is None for cell in cells]
    if not any(missing):
        return rows
    return pa.array(
        [None if is_missing else row for is_missing, row in zip(missing, rows, strict=True)]
    )


def _numbers(values: Array, what: str, entry: InputShape) -> pa.Array:
    """Rows of numbers; pictures have the net's order of axes."""
    import pyarrow as pa

    if values.ndim == 0:
        raise DataError(f"{what} is one number: the first axis is that of the rows")
    record = tuple(entry.record)
    if len(record) > 1 and values.ndim == len(record) + 1 and not _fits(values.shape[1:], entry):
        raise DataError(
            f"{what} has rows of the shape {values.shape[1:]}, and the net takes "
            f"{tuple(entry.stored)}"
        )
    if len(record) > 1 and values.ndim == len(record):
        raise DataError(
            f"{what} has the shape {values.shape}: the first axis is that of the rows, each of "
            f"them {tuple(entry.stored)}"
        )
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    column = pa.array(np.ascontiguousarray(values).reshape(-1))
    for size in reversed(values.shape[1:]):
        if not size:
            raise DataError(f"{what} has rows of the shape {values.shape[1:]}, without any number")
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column


def _fits(shape: Sequence[int], entry: InputShape) -> bool:
    """Return whether rows have the input's shape; None stands for any size."""
    return all(want in (None, size) for want, size in zip(entry.stored, shape, strict=True))


def _content(path: Any, what: str) -> bytes:
    if not isinstance(path, (str, os.PathLike)):
        raise DataError(f"{what} holds paths and {type(path).__name__}")
    return read_file(path, LARGEST_FILE)


# -- results -----------------------------------------------------------------------------------


def listed(column: pa.ChunkedArray) -> list[Any]:
    """Return a column whose rows are structs, or lists of them, as Python has them."""
    values: list[Any] = column.to_pylist()
    return values


def numbers(column: pa.ChunkedArray, record: Sequence[int] | None = None) -> Array | None:
    """Return a column of numbers, or of lists as long as each other, as an array; None of others.

    It is the caller's own; rows that are null become NaN.  ``record`` is the shape of a row.
    """
    import pyarrow as pa

    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # of no rows, in some versions
        whole = pa.concat_arrays(whole.chunks) if whole.chunks else pa.array([], column.type)
    if pa.types.is_floating(whole.type):
        return np.array(whole.to_numpy(zero_copy_only=False))
    if not pa.types.is_list(whole.type) or not pa.types.is_floating(whole.type.value_type):
        return None
    valid = np.asarray(whole.is_valid())
    flat = np.asarray(whole.flatten().to_numpy(zero_copy_only=False))
    count = int(valid.sum())
    shape = tuple(record or ())
    if count and flat.size != count * prod(shape):  # as many as the batch's own shape has
        shape = (len(flat) // count,)
    array = np.full((len(whole), *shape), np.nan, flat.dtype)
    array[valid] = flat.reshape(count, *shape)
    return array


def frame(columns: Mapping[str, Any], index: Any) -> pd.DataFrame:
    """Return a data frame; rows of arrays are arrays."""
    import pandas as pd

    series = {
        name: pd.Series(
            list(values) if not isinstance(values, np.ndarray) or values.ndim > 1 else values,
            index=index,
            dtype=None if isinstance(values, np.ndarray) and values.ndim == 1 else object,
        )
        for name, values in columns.items()
    }
    return pd.DataFrame(series, index=index)
