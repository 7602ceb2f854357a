"""What readers of files need of the native core: images resized, Snappy, check sums.

native/include/sparknet/transform.h
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.native.core import check, ffi, lib

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def resize_image(image: Bytes, height: int, width: int) -> Bytes:
    """An image of height x width (x channels) bytes in another size, as OpenCV would have it."""
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


def snappy_decode(data: bytes, size: int) -> bytes:
    """Snappy's elements as the bytes that they stand for; an ArrayError where they are damaged."""
    out = bytearray(size)
    check(lib.sn_snappy_decode(_bytes(out), size, _bytes(data), len(data)))
    return bytes(out)


def crc32c(data: bytes) -> int:
    """The check sum of some bytes."""
    return int(lib.sn_crc32c(_bytes(data), len(data)))


def _bytes(memory: Any) -> Any:
    return ffi.from_buffer("uint8_t[]", memory)
