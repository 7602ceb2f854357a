"""What readers of files need of the native core: images resized, Snappy, check sums.

native/include/sparknet/transform.h
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.native.core import check, ffi, lib

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Array = np.ndarray[Any, Any]
Taps = tuple[np.ndarray[Any, np.dtype[np.int32]], np.ndarray[Any, np.dtype[np.float32]]]
"""Places of the input for each place of the output (outputs x taps), and their weights."""


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
    image: Array, rows: Taps, columns: Taps, *, bounded: bool = False, rounded: bool = False
) -> Array:
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


def _kind(image: Array) -> int:
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
