"""Pictures that a notebook shows and a file keeps."""

from __future__ import annotations

import os
import struct
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError

if TYPE_CHECKING:
    from typing_extensions import Self

Pixels = np.ndarray[Any, np.dtype[np.uint8]]
StrPath = str | os.PathLike[str]


class Plot(ABC):
    """What ``plot`` returns: a notebook shows it at a cell's end, ``save`` writes it to a file."""

    FORMATS: ClassVar[tuple[str, ...]]

    def save(self, path: StrPath) -> None:
        """Write it in the format that the name's end says."""
        suffix = self.suffix_of(path)
        with atomic_file(path) as draft:
            draft.write_bytes(self._file(suffix))

    def saved(self, path: StrPath | None) -> Self:
        """This picture, written to a file if there is one."""
        if path is not None:
            self.save(path)
        return self

    @classmethod
    def suffix_of(cls, path: StrPath) -> str:
        """Return a name's end; refuse one that is no format of these pictures."""
        suffix = Path(path).suffix.lower()
        if suffix not in cls.FORMATS:
            raise FileError(path, f"a plot's name ends in {', '.join(cls.FORMATS)}")
        return suffix

    @abstractmethod
    def _file(self, suffix: str) -> bytes: ...


class Drawing(Plot):
    """Lines and words, as SVG."""

    FORMATS: ClassVar[tuple[str, ...]] = (".svg",)

    def __init__(self, svg: str, what: str) -> None:
        self.svg = svg
        self._what = what

    def __repr__(self) -> str:
        return f"<Drawing of {self._what}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _file(self, suffix: str) -> bytes:
        return self.svg.encode()


class Raster(Plot):
    """Height x width x 3 pixels, as PNG."""

    FORMATS = (".png",)

    def __init__(self, pixels: Pixels, what: str) -> None:
        self.pixels = pixels
        self._what = what

    def __repr__(self) -> str:
        height, width, _ = self.pixels.shape
        return f"<Picture of {self._what}, {width} x {height} pixels>"

    def _repr_png_(self) -> bytes:
        return png(self.pixels)

    def _file(self, suffix: str) -> bytes:
        return png(self.pixels)


def png(pixels: Pixels) -> bytes:
    """Height x width x 3 pixels as a PNG file (PNG specification, 11.2)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    lines = np.zeros((height, 1 + 3 * width), np.uint8)  # each begins with its filter, none
    lines[:, 1:] = pixels.reshape(height, -1)
    parts = (
        chunk(b"IHDR", head),
        chunk(b"IDAT", zlib.compress(lines.tobytes())),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
