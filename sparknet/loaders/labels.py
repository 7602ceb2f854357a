"""Names of classes: one a line, or SSD's label maps."""

from __future__ import annotations

import os
from pathlib import Path

from sparknet.errors import FileError, shown
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath, read_file
from sparknet.proto.text import parse_text

_LARGEST = 64 << 20
_MOST = 1 << 20
"""The largest label of a label map."""


def read_labels(path: StrPath) -> list[str]:
    """The names by class number: a file's lines, or the items of a label map (.prototxt).

    Numbers that a label map leaves out have an empty name.
    """
    text = _text(path)
    return _of_map(text, path) if Path(path).suffix == ".prototxt" else text.splitlines()


def _text(path: StrPath) -> str:
    try:
        return read_file(path, _LARGEST).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(path, "cannot be read: is no text in UTF-8") from error


def _of_map(text: str, path: StrPath) -> list[str]:
    items = parse_text(text, caffe_pb2.LabelMap, os.fspath(path)).item
    for item in items:
        if not 0 <= item.label <= _MOST:
            raise FileError(path, f"gives '{shown(item.name)}' the label {item.label}")
    names = [""] * (1 + max((item.label for item in items), default=-1))
    for item in items:
        names[item.label] = item.display_name or item.name
    return names
