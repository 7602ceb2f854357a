"""Messages as text that any Caffe reads: the layout of protobuf, numbers as short as they go.

Written here, and not by protobuf, whose spelling of numbers and strings has changed over time.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import isinf, isnan
from typing import Any

from google.protobuf.message import Message

from sparknet.proto.message_fields import Field, table


def lines(message: Message, indent: str = "") -> Iterator[str]:
    """The lines of a message, in the order of its fields' numbers."""
    fields = table(message.DESCRIPTOR)
    present = sorted(message.ListFields(), key=lambda item: item[0].number)
    for descriptor, value in present:
        field = fields.get(descriptor.name)
        if field is None:
            continue
        for item in value if field.repeated else (value,):
            if field.message is None:
                yield f"{indent}{field.name}: {scalar(item, field)}\n"
            else:
                yield f"{indent}{field.name} {{\n"
                yield from lines(item, indent + "  ")
                yield f"{indent}}}\n"


def scalar(value: Any, field: Field) -> str:
    """One value as text."""
    kind = field.kind
    if kind == "float":
        return short_float(value)
    if kind == "double":
        return _special(value) or repr(value)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "enum":
        return field.names.get(value, str(value))
    if kind == "string":
        return quote(value.encode("utf-8"))
    return quote(value) if kind == "bytes" else str(value)


def short_float(value: float) -> str:
    """The shortest decimal that reads back as the same float32."""
    special = _special(value)
    if special:
        return special
    single = struct.pack("<f", value)
    for precision in (6, 7, 8):
        decimal = float(f"{value:.{precision}g}")
        try:
            if struct.pack("<f", decimal) == single:
                return repr(decimal)
        except OverflowError:  # rounded up past the largest float32
            continue
    return repr(float(f"{value:.9g}"))


def _special(value: float) -> str:
    if isnan(value):
        return "nan"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    return ""


_UNPRINTABLE = re.compile(rb"[^ !#-&(-\[\]-~]")
_ESCAPES = {b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b'"': b'\\"', b"'": b"\\'", b"\\": b"\\\\"}


def quote(value: bytes) -> str:
    """A quoted string in ASCII; other bytes become three octal digits, as Caffe writes them."""
    return '"' + _UNPRINTABLE.sub(_escape, value).decode("ascii") + '"'


def _escape(match: re.Match[bytes]) -> bytes:
    byte = match[0]
    return _ESCAPES.get(byte) or b"\\%03o" % byte[0]
