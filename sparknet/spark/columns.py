"""Converts columns of Arrow batches to a net's arrays, without Python per row for equal rows.

A column may hold: numbers → (n,); lists and fixed-size lists of
numbers → (n, length); binary → bytes of the entry's shape (uint8, or float32 where four times
as long), else an encoded image; Spark's image struct and pyspark.ml's vectors → their values.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import DataError, SparkError
from sparknet.loaders.image import decode, recolored
from sparknet.net.rows import shaped
from sparknet.spark.column_types import IMAGE, VECTOR, plain

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]
Shape = tuple[int | None, ...]
"""The shape of one record; None is any size, which a crop makes the net's."""

_SPARSE = 0
_LARGEST = float(np.finfo(np.float32).max)


def arrays(batch: pa.RecordBatch, mapping: dict[str, str], shapes: dict[str, Shape]) -> Any:
    """Blob → rows of a batch, from the columns in ``mapping``; all values are finite."""
    found = {}
    for blob, name in mapping.items():
        found[blob] = column(batch.column(plain(name)), name, shapes[blob])
        check_finite(found[blob], name)
    return found


def check_finite(values: Array, name: str) -> None:
    """SparkError if a value is not a finite float32: the net would only give NaN for it."""
    if values.dtype.kind != "f" or not values.size:
        return
    low, high = float(values.min()), float(values.max())
    if not (low >= -_LARGEST and high <= _LARGEST):  # also false for NaN
        odd = low if low < -_LARGEST else high
        raise SparkError(f"column '{name}' holds {odd:g}, no number of float32: fill or filter it")


def column(values: pa.Array, name: str, shape: Shape) -> Array:
    """A column as rows of ``shape`` (that of one record; () is one number)."""
    import pyarrow.types as kind

    if values.null_count:
        raise SparkError(f"column '{name}' is null: fill such rows, or filter them out")
    of = values.type
    if kind.is_struct(of):
        found = _struct(values, name, shape)
        # Entries of plain numbers take an image as planes, one after the other.
        return _shaped(found if len(shape) != 1 else _flat(found), name, shape)
    if kind.is_binary(of) or kind.is_large_binary(of) or kind.is_fixed_size_binary(of):
        return _shaped(_binary(values, name, shape), name, shape)
    if kind.is_list(of) or kind.is_large_list(of) or kind.is_fixed_size_list(of):
        return _shaped(_lists(values, name), name, shape)
    if kind.is_integer(of) or kind.is_floating(of) or kind.is_boolean(of) or kind.is_decimal(of):
        numbers = np.asarray(values.to_numpy(zero_copy_only=False))
        return _shaped(numbers if numbers.dtype != object else numbers.astype(float), name, shape)
    raise SparkError(f"column '{name}' is of type {of}, which is neither numbers nor bytes")


def _shaped(rows: Array, name: str, shape: Shape) -> Array:
    """Rows in a record's shape; plain lists need only the right number of values."""
    if rows.ndim > 2:
        try:
            return shaped(name, rows, shape)
        except DataError as error:
            raise SparkError(str(error)) from error
    each = math.prod(rows.shape[1:])
    sizes = _square(each, shape)
    if each == math.prod(sizes):
        return rows.reshape(len(rows), *sizes)
    raise SparkError(f"column '{name}' has {each} values a row, where {shape} is wanted")


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


def _square(values: int, shape: Shape) -> tuple[int, ...]:
    """The shape with its open sizes filled in: images to be cropped count as square."""
    known = math.prod(size for size in shape if size is not None)
    side = math.isqrt(values // known) if known else 0
    return tuple(side if size is None else size for size in shape)


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
    if kind.is_list(flat.type) or kind.is_large_list(flat.type):
        inner = _lists(flat, name)
    else:
        inner = np.asarray(flat.to_numpy(zero_copy_only=False))
    if kind.is_fixed_size_list(values.type):
        length = values.type.list_size
    else:
        length = _even(np.diff(np.asarray(values.offsets)), name)
    return inner.reshape(len(values), length, *inner.shape[1:])


def _binary(values: Any, name: str, shape: Shape) -> Array:
    import pyarrow as pa

    if pa.types.is_fixed_size_binary(values.type):
        width = values.type.byte_width
        flat = np.frombuffer(values.buffers()[1], np.uint8)
        lengths = np.full(len(values), width)
        begin, end = values.offset * width, (values.offset + len(values)) * width
    else:
        ends = np.int64 if pa.types.is_large_binary(values.type) else np.int32
        _, offsets, data = values.buffers()
        at = np.frombuffer(offsets, ends)[values.offset : values.offset + len(values) + 1]
        flat = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        lengths, begin, end = np.diff(at), int(at[0]), int(at[-1])
    length = int(lengths[0]) if len(lengths) else 0
    even = bool((lengths == length).all())
    for size, dtype in ((length, np.uint8), (length // 4, np.float32)):
        wanted = math.prod(_square(size, shape))
        if even and length == wanted * np.dtype(dtype).itemsize:
            return flat[begin:end].view(dtype).reshape(len(values), wanted)
    if len(shape) == 3:
        return _images(values, name, shape)
    raise SparkError(
        f"column '{name}' has rows of {length} bytes{'' if even else ' and of others'}: "
        f"{shape} is {wanted} as bytes and {4 * wanted} as float32"
    )


def _images(values: Any, name: str, shape: Shape) -> Array:
    """Decode encoded images, which must all have one size."""
    color = shape[0] == 3
    return _stacked(
        [decode(value.as_py(), f"column '{name}'", color) for value in values],
        name,
    )


def _stacked(images: list[Array], name: str) -> Array:
    sizes = {image.shape for image in images}
    if len(sizes) > 1:
        raise SparkError(f"column '{name}' has images of {len(sizes)} sizes: resize them first")
    return np.stack(images)


def _struct(values: Any, name: str, shape: Shape) -> Array:
    fields = {values.type.field(number).name for number in range(values.type.num_fields)}
    if fields >= IMAGE:
        return _image_structs(values, name, shape)
    if fields >= VECTOR:
        return _vectors(values, name, math.prod(size for size in shape if size))
    raise SparkError(f"column '{name}' is a struct of {sorted(fields)}: no image and no vector")


def _image_structs(values: Any, name: str, shape: Shape) -> Array:
    """Convert Spark's images, rows of interleaved BGR bytes as in Caffe, to planes.

    Grey images and those with alpha give the same result as their files given as bytes.
    """
    images = []
    for image in values.to_pylist():
        size = image["height"], image["width"], image["nChannels"]
        if min(size) < 1:  # Spark's image source marks images like this that it cannot decode
            said = f"is no image that Spark can read: {image.get('origin')}"
            raise SparkError(f"column '{name}': this {said} (its option dropInvalid leaves it out)")
        if math.prod(size) != len(image["data"]):
            raise SparkError(f"column '{name}' has an image of {size} with other data than that")
        planes = np.frombuffer(image["data"], np.uint8).reshape(size).transpose(2, 0, 1)
        if len(shape) == 3 and shape[0] in (1, 3):
            planes = recolored(planes, shape[0] == 3)
        images.append(planes)
    return _stacked(images, name)


def _vectors(values: Any, name: str, length: int) -> Array:
    """Convert pyspark.ml's vectors, dense or sparse."""
    rows = np.zeros((len(values), length), np.float64)
    for row, vector in zip(rows, values.to_pylist(), strict=True):
        sparse = vector["type"] == _SPARSE
        size = vector["size"] if sparse else len(vector["values"])
        if size != length:
            raise SparkError(f"column '{name}' has a vector of {size} values: {length} are wanted")
        row[vector["indices"] if sparse else slice(None)] = vector["values"]
    return rows
