"""Messages from text and to text, and the files that hold it."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message

from sparknet.errors import FileError, TextError
from sparknet.proto.text_parser import parse_into
from sparknet.proto.text_printer import lines
from sparknet.proto.text_tokens import Tokens

M = TypeVar("M", bound=Message)
StrPath = str | os.PathLike[str]

_LARGEST = 1 << 30


def parse_text(text: str | bytes, message_class: type[M], name: str = "<text>") -> M:
    """A message from Caffe's text format; `name` stands in error messages.

    Raises TextError with line and column. Bytes need not be UTF-8 in comments.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    message = message_class()
    parse_into(Tokens(text, name), message)
    if not message.IsInitialized():
        unchecked: Any = message
        missing = ", ".join(unchecked.FindInitializationErrors())
        raise TextError(f"required fields are missing: {missing}", name)
    return message


def read_text(path: StrPath, message_class: type[M]) -> M:
    """A message from a text file."""
    return parse_text(_read(path), message_class, os.fspath(path))


def format_text(message: Message) -> str:
    """A message as text: the same on every protobuf runtime, readable by every Caffe."""
    return "".join(lines(message))


def write_text(path: StrPath, message: Message) -> None:
    """A message to a text file, which is replaced at once or not at all."""
    data = format_text(message).encode("ascii")
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise FileError(path, f"cannot be written: {error.strerror}") from error


def _read(path: StrPath) -> bytes:
    try:
        with Path(path).open("rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size > _LARGEST:
                raise FileError(path, f"is no text file: it holds {status.st_size} bytes")
            data = file.read(_LARGEST + 1)
    except FileError:
        raise
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise FileError(path, f"cannot be read: {error}") from error
    if len(data) > _LARGEST:
        raise FileError(path, f"is no text file: it holds more than {_LARGEST} bytes")
    return data


def _replace(target: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), _mode(target))
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink()
        raise


def _mode(target: Path) -> int:
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
