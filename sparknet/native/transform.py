"""What readers of files need of the native core: batches of items, images resized, Snappy.

native/include/sparknet/transform.h
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.errors import ArrayError
from sparknet.native.core import check, ffi, lib

Array = np.ndarray[Any, np.dtype[np.float32]]
Numbers = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Pixels = np.ndarray[Any, Any]
Shape3 = tuple[int, int, int]
Taps = tuple[np.ndarray[Any, np.dtype[np.int32]], np.ndarray[Any, np.dtype[np.float32]]]
"""Places of the input for each place of the output (outputs x taps), and their weights."""

FIELDS = (
    "channel_step",
    "row_step",
    "column_step",
    "channels",
    "height",
    "width",
    "label",
    "kind",
    "size",
)
RECORD = np.dtype([("values", np.uintp), *((name, np.int64) for name in FIELDS)])
BYTES, FLOATS, ENCODED, SCATTERED = 0, 1, 2, 3


class RecordError(ArrayError):
    """One record is at fault; `number` is its place in the batch."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class BatchItems:
    """Where the values of one batch's items lie; keeps their memory alive."""

    def __init__(self, count: int) -> None:
        self.table = np.zeros(count, RECORD)
        self._kept: list[Any] = []

    def __len__(self) -> int:
        return len(self.table)

    def scan(self, memory: Any, offsets: Sequence[int], sizes: Sequence[int]) -> None:
        """Find the values of serialized Datum messages in one memory."""
        buffer = ffi.from_buffer(memory)
        self._kept.append(buffer)
        failed = ffi.new("int64_t *")
        starts, lengths = np.array(offsets, np.int64), np.array(sizes, np.int64)
        status = lib.sn_scan_datums(
            self._pointer(),
            failed,
            buffer,
            len(buffer),
            len(self),
            ffi.cast("int64_t *", starts.ctypes.data),
            ffi.cast("int64_t *", lengths.ctypes.data),
        )
        _check(status, failed[0])

    def shape(self, number: int = 0) -> Shape3:
        """Channels, height and width of one item."""
        row = self.table[number]
        return int(row["channels"]), int(row["height"]), int(row["width"])

    @property
    def labels(self) -> Array:
        return self.table["label"].astype(np.float32)

    def of_kind(self, kind: int) -> list[int]:
        numbers: list[int] = np.flatnonzero(self.table["kind"] == kind).tolist()
        return numbers

    def encoded(self, number: int) -> bytes:
        """Return the compressed image of a record."""
        row = self.table[number]
        size = int(row["size"])
        return bytes(ffi.buffer(ffi.cast("char *", int(row["values"])), size)) if size else b""

    def values(self, number: int) -> Array | Bytes:
        """Return a view of a scanned item's values, valid as long as these records live."""
        row = self.table[number]
        dtype = np.dtype(np.uint8 if row["kind"] == BYTES else np.float32)
        steps = tuple(int(row[name]) for name in ("channel_step", "row_step", "column_step"))
        last = sum(step * (size - 1) for step, size in zip(steps, self.shape(number), strict=True))
        memory = ffi.buffer(ffi.cast("char *", int(row["values"])), last + dtype.itemsize)
        values: Array | Bytes = np.ndarray(self.shape(number), dtype, memory, strides=steps)
        return values

    def put(self, number: int, values: Array | Bytes) -> None:
        """Copy an item's values: channels x height x width, of any strides."""
        self._kept.append(values)
        row = self.table[number]
        row["values"] = values.ctypes.data
        row["channels"], row["height"], row["width"] = values.shape
        row["channel_step"], row["row_step"], row["column_step"] = values.strides
        row["kind"] = BYTES if values.dtype == np.uint8 else FLOATS
        row["size"] = values.size

    def put_all(self, batch: Array | Bytes) -> None:
        """Copy all items' values: an array of items x channels x height x width."""
        self._kept.append(batch)
        table, (step, *steps) = self.table, batch.strides
        places = np.arange(len(table), dtype=np.int64) * step
        table["values"] = (places + np.int64(batch.ctypes.data)).astype(np.uintp)
        table["channels"], table["height"], table["width"] = batch.shape[1:]
        table["channel_step"], table["row_step"], table["column_step"] = steps
        table["kind"] = BYTES if batch.dtype == np.uint8 else FLOATS
        table["size"] = batch[:1].size

    def _pointer(self) -> Any:
        return ffi.cast("sn_record *", self.table.ctypes.data)


@dataclass(frozen=True)
class Transformation:
    """Crop, mean, scale and mirror; `mean` is an image, `mean_values` one value a channel or one.

    ``(value - mean) * scale / std``, where `std` is one value a channel or one.  Caffe:
    data_transformer.cpp.  Item n of the data gets the same random numbers in any batch.
    """

    crop: tuple[int, int] | None = None
    random_crop: bool = False
    mirror: bool = False
    scale: float = 1.0
    mean: Array | None = None
    mean_values: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    seed: int = 0

    def shape(self, stored: Shape3) -> Shape3:
        """Return the shape of an item after the transformation."""
        return (stored[0], *self.crop) if self.crop else stored

    def apply(self, out: Array, records: BatchItems, first: int, threaded: bool = False) -> None:
        """Fill a batch; `first` is the number of its first item."""
        if out.dtype != np.float32 or not out.flags.c_contiguous or len(out) != len(records):
            raise ArrayError(f"a batch of {len(records)} items cannot be written to this array")
        channels, height, width = out.shape[1:]
        values, scales = np.empty((2, max(channels, 1)), np.float32)
        values[:] = self.mean_values or 0.0
        scales[:] = self.scale / np.asarray(self.std or 1.0, np.float64)
        mean = None if self.mean is None else np.ascontiguousarray(self.mean, np.float32)
        if mean is not None and mean.shape[0] != channels:
            raise ArrayError(f"a mean of {mean.shape[0]} channels for data of {channels}")
        how = ffi.new("sn_transform *")
        how.channels, how.height, how.width = channels, height, width
        how.crop, how.random_crop, how.mirror = bool(self.crop), self.random_crop, self.mirror
        how.seed = self.seed & (2**64 - 1)
        how.scales = ffi.cast("float *", scales.ctypes.data)
        how.mean_values = ffi.cast("float *", values.ctypes.data)
        if mean is not None:
            how.mean = ffi.cast("float *", mean.ctypes.data)
            how.mean_height, how.mean_width = mean.shape[1:]
        failed = ffi.new("int64_t *")
        target = ffi.cast("float *", out.ctypes.data)
        status = lib.sn_transform_records(
            target, failed, how, len(records), records._pointer(), first, threaded
        )
        _check(status, failed[0])


def _check(status: int, number: int) -> None:
    if status == lib.SN_ERROR_ARRAY:
        raise RecordError(number, ffi.string(lib.sn_message()).decode(errors="replace"))
    check(status)


# -- images and bytes ------------------------------------------------------------------------


def resize_image(image: Bytes, height: int, width: int) -> Bytes:
    """Return an image of height x width (x channels) bytes in another size, as OpenCV does."""
    source = np.ascontiguousarray(image, np.uint8)
    channels = 1 if source.ndim == 2 else source.shape[2]
    out = np.empty((height, width, *source.shape[2:]), np.uint8)
    status = lib.sn_resize_image(
        ffi.cast("uint8_t *", out.ctypes.data),
        height,
        width,
        ffi.cast("uint8_t *", source.ctypes.data),
        *source.shape[:2],
        channels,
    )
    check(status)
    return out


def resample_image(
    image: Pixels, rows: Taps, columns: Taps, *, bounded: bool = False, rounded: bool = False
) -> Pixels:
    """Return an image of height x width (x channels) bytes or float32, resampled along both axes.

    What weights lack to a sum of 1 counts as the image's smallest value if ``bounded``; no value
    is outside the image's then.  float32, or bytes if ``rounded``.
    """
    kind = np.dtype(np.uint8 if image.dtype == np.uint8 else np.float32)
    source = np.ascontiguousarray(image, kind)
    channels = 1 if source.ndim == 2 else source.shape[2]
    shape = (len(rows[0]), len(columns[0]), *source.shape[2:])
    out = np.empty(shape, np.uint8 if rounded else np.float32)
    how = ffi.new("sn_resample *")
    how.bounded = bounded
    axes = [_axis(how.rows, rows), _axis(how.columns, columns)]
    status = lib.sn_resample_image(
        ffi.cast("void *", out.ctypes.data),
        _kind(out),
        how,
        ffi.cast("void *", source.ctypes.data),
        _kind(source),
        *source.shape[:2],
        channels,
    )
    del axes
    check(status)
    return out


def _axis(axis: Any, taps: Taps) -> Any:
    """Fill in an axis; the arrays that it points to must be kept."""
    at, weights = np.ascontiguousarray(taps[0], np.int32), np.ascontiguousarray(taps[1], np.float32)
    axis.size, axis.taps = at.shape
    axis.at = ffi.cast("int32_t *", at.ctypes.data)
    axis.weights = ffi.cast("float *", weights.ctypes.data)
    return at, weights


def _kind(image: Pixels) -> int:
    return int(lib.SN_RECORD_BYTES if image.dtype == np.uint8 else lib.SN_RECORD_FLOATS)


def snappy_decode(data: bytes, size: int) -> bytes:
    """Snappy's elements as the bytes that they stand for; an ArrayError where they are damaged."""
    out = bytearray(size)
    check(lib.sn_snappy_decode(_bytes(out), size, _bytes(data), len(data)))
    return bytes(out)


def crc32c(data: bytes) -> int:
    """Return the check sum of some bytes."""
    return int(lib.sn_crc32c(_bytes(data), len(data)))


def _bytes(memory: Any) -> Any:
    return ffi.from_buffer("uint8_t[]", memory)


class NativeLattice:
    """Places and shares (corners x points), neighbours (corners x 2 x size); transform.h says what
    they are."""

    def __init__(self, places: Numbers, shares: Numbers, neighbours: Numbers, scale: float) -> None:
        self.places = np.ascontiguousarray(places, np.int32)
        self.shares = np.ascontiguousarray(shares, np.float64)
        self.neighbours = np.ascontiguousarray(neighbours, np.int32)
        self._lattice = ffi.new("sn_lattice *")
        self._lattice.corners, self._lattice.points = places.shape
        self._lattice.size = neighbours.shape[2]
        self._lattice.scale = scale
        self._lattice.places = ffi.cast("int32_t *", self.places.ctypes.data)
        self._lattice.shares = ffi.cast("double *", self.shares.ctypes.data)
        self._lattice.neighbours = ffi.cast("int32_t *", self.neighbours.ctypes.data)

    def filter(self, values: Numbers, transposed: bool) -> Numbers:
        """Rows of a value for each point."""
        source = np.ascontiguousarray(values, np.float64)
        if source.ndim != 2 or source.shape[1] != self._lattice.points:
            raise ValueError(f"{source.shape} are no rows of {self._lattice.points} points")
        out = np.empty_like(source)
        check(
            lib.sn_lattice_filter(
                ffi.cast("double *", out.ctypes.data),
                ffi.cast("double *", source.ctypes.data),
                len(source),
                self._lattice,
                transposed,
            )
        )
        return out
