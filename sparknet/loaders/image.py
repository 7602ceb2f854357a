"""Image files: their shapes, and lists of them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sparknet.errors import FileError, MissingExtra

LONGEST_LINE = 1 << 16
CHANNELS = {"1": 1, "L": 1, "I": 1, "F": 1, "I;16": 1, "I;16B": 1, "LA": 4, "RGBA": 4, "PA": 4}
"""Channels by PIL mode as OpenCV's unchanged decoding has them; any other mode is colour, 3."""


def image_shape(image: str | bytes, name: str | None = None) -> tuple[int, int, int]:
    """Channels, height and width of an image file or its bytes; the pixels are not decoded."""
    label = name or (image if isinstance(image, str) else "<bytes>")
    with open_image(image, label) as picture:
        width, height = picture.size
        return CHANNELS.get(picture.mode, 3), height, width


def open_image(image: str | bytes, name: str) -> Any:
    """An image whose header has been read."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("pillow", "images", "reading images") from error
    file = io.BytesIO(image) if isinstance(image, bytes) else image
    try:
        return Image.open(file)
    except FileNotFoundError as error:
        raise FileError(name, "does not exist") from error
    except MemoryError:
        raise
    except Exception as error:
        raise FileError(name, f"is no image that can be read: {error}") from error


def read_list(path: str) -> Iterator[tuple[str, int]]:
    """The lines ``file label`` of an image list (Caffe: image_data_layer.cpp)."""
    if not Path(path).is_file():
        raise FileError(path, "does not exist" if not Path(path).exists() else "is no file")
    with Path(path).open(encoding="utf-8", errors="surrogateescape") as lines:
        number = 0
        while line := lines.readline(LONGEST_LINE):
            number += 1
            if len(line) >= LONGEST_LINE:
                raise FileError(path, f"line {number} is too long")
            if line.strip():
                yield _entry(line, path, number)


def _entry(line: str, path: str, number: int) -> tuple[str, int]:
    name, _, label = line.strip().rpartition(" ")
    try:
        if not name:
            raise ValueError
        return name.strip(), int(label)
    except ValueError:
        raise FileError(path, f"line {number} is not a file name and a label") from None
