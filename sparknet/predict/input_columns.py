"""Converts columns of Arrow batches to a net's arrays, without Python per row for equal rows.

A column may hold: numbers → (n,); lists and fixed-size lists of
numbers → (n, length); binary → bytes of the entry's shape (uint8, or float32 where four times
as long), else an encoded image; Spark's image struct and pyspark.ml's vectors → their values.
Images become arrays of one size, as `ImageArrays` says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import DataError, SparkError
from sparknet.loaders.image_arrays import Found, ImageArrays, stacked
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net.entries import CHANNELS, Entry
from sparknet.net.feed import raising, shaped
from sparknet.net.record_checks import ClassNumbers
from sparknet.predict.binary import Binary, Shape, Sizes
from sparknet.predict.spark_structs import IMAGE, VECTOR, image_reader, vectors

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class InputSpec:
    """What an input takes of a row."""

    shape: Shape
    images: ImageArrays | None = None
    """What makes its arrays of images, if it takes images."""
    blank: float | None = None
    """The value of rows that fill up a record with fewer of them, if it takes such."""
    told: Sizes | None = None
    """The shape of raw records, where the column says it."""
    classes: ClassNumbers | None = None
    """What a loss takes its values for, if they are class numbers."""
    features: tuple[str, ...] = ()
    """The columns of a table that make its record, a number each."""

    @property
    def kinds(self) -> Binary:
        """What tells the values of a binary column apart."""
        return Binary(self.shape, self.images or _plain_images(self.shape), self.told)


def input_specs(
    entries: Iterable[Entry],
    training: bool = False,
    told: Mapping[str, Sizes] | None = None,
    classes: Mapping[str, ClassNumbers] | None = None,
    features: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, InputSpec]:
    """Return what a net's inputs take; ``told`` has the shapes of raw records, by input,
    ``classes`` the classes that its losses know, ``features`` the columns that make a record.
    """
    return {
        entry.name: InputSpec(
            entry.stored,
            None if entry.pictures is None else entry.images(training),
            entry.blank,
            (told or {}).get(entry.name),
            (classes or {}).get(entry.name),
            tuple((features or {}).get(entry.name, ())),
        )
        for entry in entries
    }


def arrays(
    batch: pa.RecordBatch, mapping: dict[str, str], shapes: Mapping[str, Shape | InputSpec]
) -> dict[str, Array]:
    """Blob → rows of a batch, from the columns in ``mapping``; all values are finite."""
    blobs = {}
    for blob, name in mapping.items():
        want = shapes[blob]
        want = want if isinstance(want, InputSpec) else InputSpec(want)
        values = batch.column(plain(name))
        if want.blank is not None:
            values = filled_up(values, name, want.shape, want.blank)
        try:
            blobs[blob] = column(values, name, want.shape, want.images, want.told)
            check_finite(blobs[blob], name)
        except SparkError:
            _check_features(values, want.features)
            raise
        if want.classes is not None:
            want.classes.check(blobs[blob], name)
    return blobs


def _check_features(values: pa.Array, features: Sequence[str]) -> None:
    """SparkError naming the first of the columns in a record that has no finite number.

    A list that is no record of these columns, or another type, is a column of the user's own."""
    import pyarrow.types as kind

    if not (kind.is_list(values.type) or kind.is_fixed_size_list(values.type)):
        return
    if len(values.flatten()) != len(values) * len(features):
        return
    for place, name in enumerate(features):
        numbers = values.flatten()[place :: len(features)]
        check_finite(column(numbers, name, ()), name)


def column_map(columns: Any) -> dict[str, str]:
    """Return the user's map from blobs to columns; SparkError if it is no such dict."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping) or not all(
        isinstance(one, str) for one in columns.values()
    ):
        raise SparkError(f"columns is {columns!r}: a dict of blobs' names and columns' is needed")
    return dict(columns)


def plain(name: str) -> str:
    """Return a column's name for mapInArrow: PySpark takes a dot in a name for a field access.

    Two names never become one, as they would with an underscore.
    """
    return name.replace(".", "\u2024").replace("`", "\u2035")


def check_finite(values: Array, name: str) -> None:
    """SparkError if a value is not a finite float32: the net would only give NaN for it."""
    if values.dtype.kind != "f" or not values.size:
        return
    if values.dtype == np.float32 and np.isfinite(values).all():
        return
    low, high = float(values.min()), float(values.max())
    if not (low >= -_LARGEST and high <= _LARGEST):  # also false for NaN
        odd = low if low < -_LARGEST else high
        raise SparkError(f"column '{name}' holds {odd:g}, no number of float32: fill or filter it")


def column(
    values: pa.Array,
    name: str,
    shape: Shape,
    images: ImageArrays | None = None,
    told: Sizes | None = None,
) -> Array:
    """Return a column as rows of ``shape`` (that of one record; () is one number).

    Unless ``images`` says more, images keep their size; ``told`` is the shape of raw records.
    """
    if values.null_count:
        raise SparkError(f"column '{name}' is null: fill such rows, or filter them out")
    if not len(values):
        return np.zeros((0, *(size or 0 for size in shape)), np.uint8)
    kinds = InputSpec(shape, images, told=told).kinds
    return kinds.resized(_rows(values, name, kinds))


def _rows(values: pa.Array, name: str, kinds: Binary) -> Array:
    import pyarrow.types as kind

    of = values.type
    if kind.is_struct(of):
        rows = _struct(values, name, kinds)
        # Entries of plain numbers take an image as planes, one after the other.
        return _shaped(rows if len(kinds.shape) != 1 else _flat(rows), name, kinds)
    if kind.is_binary(of) or kind.is_large_binary(of) or kind.is_fixed_size_binary(of):
        return _shaped(_binary(values, name, kinds), name, kinds)
    if kind.is_list(of) or kind.is_large_list(of) or kind.is_fixed_size_list(of):
        return _shaped(_lists(values, name), name, kinds)
    if kind.is_integer(of) or kind.is_floating(of) or kind.is_boolean(of) or kind.is_decimal(of):
        return _shaped(_numbers(values), name, kinds)
    raise SparkError(f"column '{name}' is of type {of}, which is neither numbers nor bytes")


def _numbers(values: Any) -> Array:
    """Arrow's numbers; decimals as floating ones."""
    import pyarrow as pa

    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def filled_up(values: pa.Array, name: str, shape: Shape, blank: float) -> pa.Array:
    """Arrays of arrays, each with as many of these as the shape says; other columns as they are."""
    import pyarrow as pa

    kind, of = pa.types, values.type
    if not (kind.is_list(of) or kind.is_large_list(of)) or values.null_count:
        return values
    inner = values.flatten()
    if not (kind.is_list(inner.type) or kind.is_large_list(inner.type)):
        return values
    if inner.null_count:
        raise SparkError(f"column '{name}' has nulls inside its lists")
    room, width = (size or 0 for size in shape)
    counts = np.diff(np.asarray(values.offsets))
    if (most := max(counts, default=0)) > room:
        raise SparkError(f"column '{name}' has a row of {most}: the net has room for {room}")
    rows = np.full((len(values), room, width), blank, np.float32)
    if counts.any():
        rows[np.arange(room) < counts[:, None]] = _shaped(
            _lists(inner, name), name, Binary((width,))
        )
    return pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), room * width)


def _shaped(rows: Array, name: str, kinds: Binary) -> Array:
    """Rows in a record's shape; plain lists need only the right number of values."""
    shape = kinds.shape
    if rows.ndim > 2:
        try:
            return shaped(name, rows, shape)
        except DataError as error:
            raise SparkError(str(error)) from error
    each = math.prod(rows.shape[1:])
    for sizes in kinds.sizes(each):
        if each == math.prod(sizes):
            return rows.reshape(len(rows), *sizes)
    cure = ": one record is a batch of one, such as x[None]" if rows.ndim == 1 else ""
    raise SparkError(f"column '{name}' has {each} values per row, but the net takes {shape}{cure}")


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


def _even(lengths: Array, name: str) -> int:
    if len(lengths) and (lengths != lengths[0]).any():
        odd = int(lengths[lengths != lengths[0]][0])
        raise SparkError(f"column '{name}' has rows of {int(lengths[0])} and of {odd} values")
    return int(lengths[0]) if len(lengths) else 0


def _lists(values: Any, name: str) -> Array:
    import pyarrow.types as kind

    flat = values.flatten()
    if flat.null_count:
        raise SparkError(f"column '{name}' has nulls inside its lists")
    nested = (kind.is_list, kind.is_large_list, kind.is_fixed_size_list)
    inner = _lists(flat, name) if any(one(flat.type) for one in nested) else _numbers(flat)
    if kind.is_fixed_size_list(values.type):
        length = values.type.list_size
    else:
        length = _even(np.diff(np.asarray(values.offsets)), name)
    return inner.reshape(len(values), length, *inner.shape[1:])


def _binary(values: Any, name: str, kinds: Binary) -> Array:
    flat, lengths, begin, end = _bytes_of(values)
    length = int(lengths[0])
    even = bool((lengths == length).all())
    if even and length:
        rows = kinds.rows(flat[begin:end].reshape(len(values), length))
        if rows is not None:
            return rows
    if kinds.images is not None:
        return _stacked(pictures(values, name, kinds.images, kinds), name)
    needed = math.prod(size or 0 for size in kinds.shape)
    raise SparkError(
        f"column '{name}' has rows of {length} bytes{'' if even else ' and of others'}: "
        f"{kinds.shape} is {needed} as bytes and {4 * needed} as float32"
    )


def _bytes_of(values: Any) -> tuple[Array, Array, int, int]:
    """Return all bytes of a binary column, its rows' lengths, and where these begin and end."""
    import pyarrow as pa

    if pa.types.is_fixed_size_binary(values.type):
        width = values.type.byte_width
        flat = np.frombuffer(values.buffers()[1], np.uint8)
        lengths = np.full(len(values), width)
        return flat, lengths, values.offset * width, (values.offset + len(values)) * width
    ends = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    _, offsets, data = values.buffers()
    at = np.frombuffer(offsets, ends)[values.offset : values.offset + len(values) + 1]
    flat = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return flat, np.diff(at), int(at[0]), int(at[-1])


def pictures(
    values: pa.Array, name: str, images: ImageArrays, kinds: Binary | None = None
) -> list[Found]:
    """For each row of a column of encoded images or of Spark's image structs its array, or the
    error that says why it has none; ``kinds`` tells raw images apart.

    Several are decoded at a time, without the interpreter's lock.
    """
    import pyarrow.types as kind

    read_pixels = image_reader(values, name) if kind.is_struct(values.type) else None

    def make(row: int) -> Array:
        value = values[row]
        if not value.is_valid:
            raise SparkError(f"column '{name}' is null: fill such rows, or filter them out")
        if read_pixels is not None:
            return images.of_pixels(read_pixels(row), f"column '{name}'")
        if kinds is not None:
            return kinds.array(value.as_py(), f"column '{name}'")
        return images.of_file(value.as_py(), f"column '{name}'")

    return images.map(make, len(values))


def _plain_images(shape: Shape) -> ImageArrays | None:
    """Return what decodes images for inputs of such a shape, and leaves their size."""
    if len(shape) != 3 or shape[0] not in CHANNELS:
        return None
    return ImageArrays(Preprocessing(interpolation="cv2.linear"), shape[0])


def _stacked(found: list[Found], name: str) -> Array:
    rows = raising(found)
    sizes = {row.shape for row in rows}
    if len(sizes) > 1:
        raise SparkError(f"column '{name}' has images of {len(sizes)} sizes: give resize")
    return stacked(rows)


def _struct(values: Any, name: str, kinds: Binary) -> Array:
    fields = {values.type.field(number).name for number in range(values.type.num_fields)}
    if fields >= IMAGE:
        if kinds.images is not None:
            return _stacked(pictures(values, name, kinds.images), name)
        read_pixels = image_reader(values, name)
        return _stacked([read_pixels(row).transpose(2, 0, 1) for row in range(len(values))], name)
    if fields >= VECTOR:
        return vectors(values, name, math.prod(size for size in kinds.shape if size))
    raise SparkError(f"column '{name}' is a struct of {sorted(fields)}: no image and no vector")


def holds_bytes(batch: pa.RecordBatch, column: str) -> bool:
    """Return whether a column holds bytes or structs, as pictures are."""
    import pyarrow as pa

    kind = batch.column(plain(column)).type
    of = pa.types
    return bool(of.is_binary(kind) or of.is_large_binary(kind) or of.is_struct(kind))
