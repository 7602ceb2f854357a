"""Net and solver files, brought to the current generation as they are read."""

from __future__ import annotations

import os

from sparknet.errors import LayerError, SolverError, SpecError
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath
from sparknet.proto.text import parse_text, read_text
from sparknet.proto.upgrade import upgrade_net_in_place, upgrade_solver_in_place


def parse_net(text: str | bytes, name: str = "<text>") -> caffe_pb2.NetParameter:
    """A net from text; `name` stands in error messages."""
    return _upgraded_net(parse_text(text, caffe_pb2.NetParameter, name), name)


def read_net(path: StrPath) -> caffe_pb2.NetParameter:
    """A net from a prototxt file, old generations upgraded.

    >>> from sparknet import LinearLayer, NetParams, RDDLayer
    >>> net = NetParams("n", RDDLayer("data", [8, 2]), LinearLayer("ip", "data", num_outputs=3))
    >>> net.save("net.prototxt")
    >>> [layer.type for layer in read_net("net.prototxt").layer]
    ['Input', 'InnerProduct']
    """
    return _upgraded_net(read_text(path, caffe_pb2.NetParameter), os.fspath(path))


def parse_solver(text: str | bytes, name: str = "<text>") -> caffe_pb2.SolverParameter:
    """A solver from text; `name` stands in error messages."""
    return _upgraded_solver(parse_text(text, caffe_pb2.SolverParameter, name), name, "")


def read_solver(path: StrPath) -> caffe_pb2.SolverParameter:
    """A solver from a prototxt file.

    As in Caffe, its snapshots are named after the file where it gives no snapshot_prefix.
    """
    name = os.fspath(path)
    return _upgraded_solver(read_text(path, caffe_pb2.SolverParameter), name, name)


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
