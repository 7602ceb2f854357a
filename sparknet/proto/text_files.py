"""Net and solver files, brought to the current generation as they are read."""

from __future__ import annotations

import os
import warnings

from sparknet.errors import LayerError, SolverError, SpecError, TextError, shown
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath
from sparknet.proto.dialect import in_dialect
from sparknet.proto.forks import origin
from sparknet.proto.text import parse_text, read_text
from sparknet.proto.text_tokens import Unknown
from sparknet.proto.upgrade import upgrade_net_in_place, upgrade_solver_in_place


class UnknownWarning(UserWarning):
    """Something in a text that the schema lacks was left out, as the caller allows."""


def parse_net(
    text: str | bytes,
    name: str = "<text>",
    *,
    unknown: str = "refuse",
    dialect: str | None = None,
) -> caffe_pb2.NetParameter:
    """A net from text; `name` stands in error messages, the others as in `read_net`."""
    skipped = _skipped(unknown)
    net = parse_text(text, caffe_pb2.NetParameter, name, skipped)
    _warn_of(skipped, name)
    return in_dialect(_upgraded_net(net, name), dialect)


def read_net(
    path: StrPath, *, unknown: str = "refuse", dialect: str | None = None
) -> caffe_pb2.NetParameter:
    """A net from a prototxt file, old generations upgraded.

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
        message = f"{name}:{one.line}: {one.message} has no '{shown(one.name)}'{whose}: left out"
        warnings.warn(message, UnknownWarning, stacklevel=3)


def parse_solver(text: str | bytes, name: str = "<text>") -> caffe_pb2.SolverParameter:
    """A solver from text; `name` stands in error messages."""
    return _upgraded_solver(parse_text(text, caffe_pb2.SolverParameter, name), name, "")


def read_solver(path: StrPath) -> caffe_pb2.SolverParameter:
    """A solver from a prototxt file.

    As in Caffe, its snapshots are named after the file where it gives no snapshot_prefix.
    """
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
    named = shown(solver.net or solver.train_net)
    its = f"; its net is {named}" if named else ""
    raise TextError(f"is a solver, not a net{its}", os.fspath(path))


def _refuse_net(path: StrPath) -> None:
    """TextError if the file, which is no solver, is a net."""
    try:
        net = read_text(path, caffe_pb2.NetParameter)
    except TextError:
        return
    if net.layer or net.layers:
        said = "is a net, not a solver: a solver says how a net is trained, and names it in net"
        raise TextError(said, os.fspath(path))


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
