"""Messages from text and to text, and the files of nets and solvers."""

from __future__ import annotations

import os
import re
import struct
import warnings
from collections.abc import Iterator
from math import isinf, isnan
from typing import Any, TypeVar

from google.protobuf.message import Message

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, LayerError, SolverError, SpecError, TextError, clean
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath, open_source
from sparknet.proto.forks import in_dialect, origin
from sparknet.proto.message_fields import Field, table
from sparknet.proto.text_parser import parse_into
from sparknet.proto.text_tokens import Tokens, Unknown
from sparknet.proto.untrusted import unmarked
from sparknet.proto.upgrade import upgrade_net_in_place, upgrade_solver_in_place


def lines(message: Message, indent: str = "") -> Iterator[str]:
    """Yield the lines of a message, in the order of its fields' numbers."""
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
    """Return one value as text."""
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
    """Return the shortest decimal that reads back as the same float32."""
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
    """Return a quoted string in ASCII; other bytes become three octal digits."""
    return '"' + _UNPRINTABLE.sub(_escape, value).decode("ascii") + '"'


def _escape(match: re.Match[bytes]) -> bytes:
    byte = match[0]
    return _ESCAPES.get(byte) or b"\\%03o" % byte[0]


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
    """Return a message from Caffe's text format; `name` stands in error messages.

    Raises TextError with line and column; with a list `skipped` fields that the schema lacks are
    passed over and noted there instead. Bytes need not be UTF-8 in comments."""
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
    """Return a message from a text file; `skipped` as in `parse_text`."""
    with open_source(path) as source:
        if source.size > _LARGEST:
            raise FileError(path, f"is no text file: it holds {source.size} bytes")
        data = source.read(0, source.size)
    for prefix, kind in _BINARY.items():
        if bytes(data[:4]).startswith(prefix):
            cure = "a net is a prototxt, a caffemodel or a .onnx (torch.onnx.export)"
            raise TextError(f"is {kind}: {cure}", os.fspath(path))
    return parse_text(data, message_class, os.fspath(path), skipped)


def format_text(message: Message) -> str:
    """Return a message as text: the same on every protobuf runtime, readable by every Caffe."""
    return "".join(lines(message))


def write_text(path: StrPath, message: Message) -> None:
    """Write a message to a text file, which is replaced at once or not at all."""
    if isinstance(message, caffe_pb2.NetParameter):
        message = unmarked(message)
    text = format_text(message)
    with atomic_file(path) as draft:
        draft.write_text(text, encoding="ascii")


class UnknownWarning(UserWarning):
    """Something in a text that the schema lacks was left out, as the caller allows."""


def parse_net(
    text: str | bytes,
    name: str = "<text>",
    *,
    unknown: str = "refuse",
    dialect: str | None = None,
) -> caffe_pb2.NetParameter:
    """Return a net from text; `name` stands in error messages, the others as in `read_net`."""
    skipped = _skipped(unknown)
    net = parse_text(text, caffe_pb2.NetParameter, name, skipped)
    _warn_of(skipped, name)
    return in_dialect(_upgraded_net(net, name), dialect)


def read_net(
    path: StrPath, *, unknown: str = "refuse", dialect: str | None = None
) -> caffe_pb2.NetParameter:
    """Return a net from a prototxt file, old generations upgraded.

    A field that the schema lacks is an error, or with ``unknown="skip"`` left out with an
    `UnknownWarning`.  `dialect` is the fork whose meaning counts where no field tells forks
    apart: docs/compatibility.md lists them.

    >>> from sparknet import LinearLayer, NetParams, RDDLayer
    >>> net = NetParams("n", RDDLayer("data", [8, 2]), LinearLayer("ip", "data", num_outputs=3))
    >>> net.save("net.prototxt")
    >>> [layer.type for layer in read_net("net.prototxt").layer]
    ['Input', 'InnerProduct']
    """
    skipped, name = _skipped(unknown), os.fspath(path)
    try:
        net = read_text(path, caffe_pb2.NetParameter, skipped)
    except TextError:
        _refuse_solver(path)
        raise
    if skipped and not (net.layer or net.layers):
        _refuse_solver(path)
    _warn_of(skipped, name)
    return in_dialect(_upgraded_net(net, name), dialect)


def _skipped(unknown: str) -> list[Unknown] | None:
    if unknown not in ("refuse", "skip"):
        raise SpecError(f"unknown must be 'refuse' or 'skip'; it is {unknown!r}")
    return [] if unknown == "skip" else None


def _warn_of(skipped: list[Unknown] | None, name: str) -> None:
    for one in skipped or ():
        whose = origin(one.message, one.name)
        message = f"{name}:{one.line}: {one.message} has no '{clean(one.name)}'{whose}: left out"
        warnings.warn(message, UnknownWarning, stacklevel=3)


def parse_solver(text: str | bytes, name: str = "<text>") -> caffe_pb2.SolverParameter:
    """Return a solver from text; `name` stands in error messages."""
    return _upgraded_solver(parse_text(text, caffe_pb2.SolverParameter, name), name, "")


def read_solver(path: StrPath) -> caffe_pb2.SolverParameter:
    """Return a solver from a prototxt file, which names snapshots where it does not."""
    name = os.fspath(path)
    try:
        solver = read_text(path, caffe_pb2.SolverParameter)
    except TextError:
        _refuse_net(path)
        raise
    return _upgraded_solver(solver, name, name)


def _refuse_solver(path: StrPath) -> None:
    """TextError if the file, which is no net, is a solver."""
    try:
        solver = read_text(path, caffe_pb2.SolverParameter)
    except TextError:
        return
    net = clean(solver.net or solver.train_net)
    its = f"; its net is {net}" if net else ""
    raise TextError(f"is a solver, not a net{its}", os.fspath(path))


def _refuse_net(path: StrPath) -> None:
    """TextError if the file, which is no solver, is a net."""
    try:
        net = read_text(path, caffe_pb2.NetParameter)
    except TextError:
        return
    if net.layer or net.layers:
        problem = "is a net, not a solver: a solver says how a net is trained, and names it in net"
        raise TextError(problem, os.fspath(path))


def _upgraded_net(net: caffe_pb2.NetParameter, name: str) -> caffe_pb2.NetParameter:
    try:
        upgrade_net_in_place(net)
    except LayerError as error:
        reason = str(error).removeprefix(f"layer '{error.layer}': ")
        raise LayerError(error.layer, f"{reason} (in {name})") from error
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from error
    return net


def _upgraded_solver(
    solver: caffe_pb2.SolverParameter, name: str, path: str
) -> caffe_pb2.SolverParameter:
    try:
        upgrade_solver_in_place(solver, path)
    except SolverError as error:
        raise SolverError(f"{name}: {error}") from error
    return solver
