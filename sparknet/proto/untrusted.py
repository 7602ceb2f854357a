"""Nets of unknown origin: each layer carries a mark, and imports, writes and reads nothing."""

from __future__ import annotations

from pathlib import PurePath

from sparknet.errors import LayerError, SolverError, clean
from sparknet.proto import caffe_pb2
from sparknet.proto.upgrade import upgrade_net

UNTRUSTED = "the net is of unknown origin; give trusted=True (--trusted) if you know it"


def with_trust(net: caffe_pb2.NetParameter, trusted: bool | None) -> caffe_pb2.NetParameter:
    """Return a net that is trusted or not; None leaves it as it is."""
    if trusted is None:
        return net
    copy = upgrade_net(net)
    mark(copy, trusted)
    return copy


def solver_with_trust(
    solver: caffe_pb2.SolverParameter, trusted: bool | None
) -> caffe_pb2.SolverParameter:
    """Return a solver whose own nets are trusted or not; refuse files of unknown origin."""
    if trusted is None:
        return solver
    if not trusted:
        _check_files(solver)
    copy = caffe_pb2.SolverParameter()
    copy.CopyFrom(solver)
    nets = [
        getattr(copy, field) for field in ("net_param", "train_net_param") if copy.HasField(field)
    ]
    for net in (*nets, *copy.test_net_param):
        net.CopyFrom(with_trust(net, trusted))
    return copy


NET_FILES = ("net", "train_net", "test_net")


def check_solver_files(solver: caffe_pb2.SolverParameter, fields: tuple[str, ...]) -> None:
    """Raise SolverError if one of these fields of a solver of unknown origin names a file."""
    for field in fields:
        path = getattr(solver, field)
        if path:
            name = clean(path if isinstance(path, str) else path[0])
            raise SolverError(f"{field}: to read '{name}' is refused: {UNTRUSTED}")


def _check_files(solver: caffe_pb2.SolverParameter) -> None:
    check_solver_files(solver, (*NET_FILES, "weights"))
    prefix = PurePath(solver.snapshot_prefix)
    if prefix.is_absolute() or ".." in prefix.parts:
        name = clean(solver.snapshot_prefix)
        raise SolverError(f"snapshot_prefix: to write '{name}' is refused: {UNTRUSTED}")


def unmarked(net: caffe_pb2.NetParameter) -> caffe_pb2.NetParameter:
    """Return the net as files have it, without marks."""
    copy = caffe_pb2.NetParameter()
    copy.CopyFrom(net)
    mark(copy, True)
    return copy


def mark(net: caffe_pb2.NetParameter, trusted: bool) -> None:
    """Mark a net of the current generation, in place."""
    for layer in net.layer:
        if trusted:
            layer.ClearField("untrusted")
        else:
            layer.untrusted = True


def check_trusted(layer: caffe_pb2.LayerParameter, deed: str) -> None:
    """LayerError if a layer of unknown origin is about to do something outside the net."""
    if layer.untrusted:
        raise LayerError(layer.name, f"{layer.type}: {deed} is refused: {UNTRUSTED}")
