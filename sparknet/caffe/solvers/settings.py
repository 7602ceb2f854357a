"""What a solver can be made from: a file, a message, `SolverParams`; and the nets for it."""

from __future__ import annotations

import os
from typing import Any, TypeAlias

from sparknet.errors import SolverError
from sparknet.proto import caffe_pb2, read_solver, upgrade_solver
from sparknet.proto.message_fields import HasMessage

SolverSource: TypeAlias = caffe_pb2.SolverParameter | HasMessage | str | os.PathLike[str]
"""A path, a SolverParameter, or an object whose ``to_proto()`` is one (`SolverParams`)."""
NetSource: TypeAlias = caffe_pb2.NetParameter | HasMessage | str | os.PathLike[str] | None
"""A net that replaces the solver's own."""

_NETS = ("net", "net_param", "train_net", "train_net_param")


def settings(source: SolverSource, net: NetSource = None) -> caffe_pb2.SolverParameter:
    """Return the solver's settings, its own copy; a net given here replaces the one they name."""
    if isinstance(source, (str, os.PathLike)):
        solver = read_solver(source)
    else:
        solver = upgrade_solver(_message(source, caffe_pb2.SolverParameter, "solver"))
    if net is not None:
        for field in _NETS:
            solver.ClearField(field)
        if isinstance(net, (str, os.PathLike)):
            solver.net = os.fspath(net)
        else:
            solver.net_param.CopyFrom(_message(net, caffe_pb2.NetParameter, "net"))
    return solver


def _message(source: Any, kind: Any, what: str) -> Any:
    message = source.to_proto() if hasattr(source, "to_proto") else source
    if not isinstance(message, kind):
        raise SolverError(f"a {what} cannot be made from a {type(source).__name__}")
    return message
