"""Messages from text and to text, and the files that hold it."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from google.protobuf.message import Message

from sparknet.errors import FileError, TextError
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath, open_source, replacing
from sparknet.proto.text_parser import parse_into
from sparknet.proto.text_printer import lines
from sparknet.proto.text_tokens import Tokens, Unknown
from sparknet.proto.untrusted import unmarked

M = TypeVar("M", bound=Message)

_LARGEST = 1 << 30
_BINARY = {
    b"PK\x03\x04": "an archive, as torch.save and numpy.savez write",
    b"\x80": "a pickle",
    b"\x89HDF": "HDF5",
}
"""The first bytes of files that are taken for text."""


def parse_text(
    text: str | bytes,
    message_class: type[M],
    name: str = "<text>",
    skipped: list[Unknown] | None = None,
) -> M:
    """A message from Caffe's text format; `name` stands in error messages.

    Raises TextError with line and column; with a list `skipped` fields that the schema lacks are
    passed over and noted there instead. Bytes need not be UTF-8 in comments.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    message = message_class()
    parse_into(Tokens(text, name, skipped), message)
    if not message.IsInitialized():
        unchecked: Any = message
        missing = ", ".join(unchecked.FindInitializationErrors())
        raise TextError(f"required fields are missing: {missing}", name)
    return message


def read_text(path: StrPath, message_class: type[M], skipped: list[Unknown] | None = None) -> M:
    """A message from a text file; `skipped` as in `parse_text`."""
    with open_source(path) as source:
        if source.size > _LARGEST:
            raise FileError(path, f"is no text file: it holds {source.size} bytes")
        data = source.read(0, source.size)
    for beginning, kind in _BINARY.items():
        if bytes(data[:4]).startswith(beginning):
            cure = "a net is a prototxt, a caffemodel or a .onnx (torch.onnx.export)"
            raise TextError(f"is {kind}: {cure}", os.fspath(path))
    return parse_text(data, message_class, os.fspath(path), skipped)


def format_text(message: Message) -> str:
    """A message as text: the same on every protobuf runtime, readable by every Caffe."""
    return "".join(lines(message))


def write_text(path: StrPath, message: Message) -> None:
    """A message to a text file, which is replaced at once or not at all."""
    if isinstance(message, caffe_pb2.NetParameter):
        message = unmarked(message)
    text = format_text(message)
    with replacing(path) as draft:
        draft.write_text(text, encoding="ascii")
