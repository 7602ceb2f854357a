"""Bytes at positions: of a file that is read in place, or of memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

from sparknet.atomic_files import file_kind, io_reason
from sparknet.errors import FileError, clean

StrPath = str | os.PathLike[str]

_WINDOW = 1 << 12


class ByteSource:
    """A named run of bytes held in memory."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "<memory>") -> None:
        self.name = name
        self._data = memoryview(data).cast("B")
        self.size = len(self._data)

    def peek(self, position: int, most: int) -> bytes:
        """Up to `most` bytes: fewer only at the end."""
        return bytes(self._data[position : position + most])

    def read(self, position: int, count: int) -> bytes:
        """Exactly `count` bytes."""
        data = self.peek(position, count)
        if len(data) != count:
            raise FileError(self.name, "is cut short")
        return data

    def fill(self, position: int, target: memoryview) -> None:
        """Copies bytes into `target`, all of it."""
        part = self._data[position : position + len(target)]
        if len(part) != len(target):
            raise FileError(self.name, "is cut short")
        target[:] = part


class FileSource(ByteSource):
    """A file, read by position into arrays; a mapped one could be truncated."""

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(b"", name)
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self._window, self._start = b"", 0

    def peek(self, position: int, most: int) -> bytes:
        offset = position - self._start
        if offset >= 0 and offset + most <= len(self._window):
            return self._window[offset : offset + most]
        if most > _WINDOW:
            return self._pread(position, most)
        self._window, self._start = self._pread(position, _WINDOW), position
        return self._window[:most]

    def fill(self, position: int, target: memoryview) -> None:
        done = 0
        while done < len(target):
            try:
                got = os.preadv(self._descriptor, [target[done:]], position + done)
            except OSError as error:
                raise FileError(self.name, error.strerror or str(error)) from error
            if got == 0:
                raise FileError(self.name, "is cut short")
            done += got

    def stream(self) -> BinaryIO:
        """Return the same file for a library that reads streams."""
        stream = open(self._descriptor, "rb", buffering=0, closefd=False)  # noqa: SIM115
        return cast(BinaryIO, stream)

    def _pread(self, position: int, count: int) -> bytes:
        try:
            return os.pread(self._descriptor, count, position)
        except OSError as error:
            raise FileError(self.name, error.strerror or str(error)) from error


def exists(path: StrPath) -> bool:
    """Return whether there is such a file or folder; of a name that is too long there is none."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises OSError


def open_file(path: StrPath) -> BufferedReader:
    """Open an untrusted file; FileError for a folder, a pipe, a device or no file."""
    name = os.fspath(path)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise FileError(clean(name), io_reason(error)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileError(name, file_kind(name))
    return os.fdopen(descriptor, "rb")


def read_file(path: StrPath, max_bytes: int) -> bytes:
    """Read the whole of an untrusted file; FileError if it has more bytes than that."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise FileError(path, f"has {size} bytes; {max_bytes} are the most")
        try:
            return file.read(max_bytes)
        except OSError as error:
            raise FileError(path, io_reason(error)) from error


@contextmanager
def open_source(path: StrPath) -> Iterator[FileSource]:
    """Open an untrusted file that is read by position."""
    with open_file(path) as file:
        yield FileSource(file.fileno(), os.fspath(path))


def check_is_file(path: StrPath) -> None:
    """FileError if there is no file of this name."""
    if not Path(path).is_file():
        raise FileError(path, file_kind(path) if Path(path).exists() else "does not exist")
