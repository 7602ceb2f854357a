"""Caffe's messages, and its text and binary files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparknet import renamed
from sparknet.proto import caffe_pb2
from sparknet.proto.blob_file import read_blob, write_blob
from sparknet.proto.forks import ForkWarning
from sparknet.proto.model import Model, copy_arrays
from sparknet.proto.model_file import parse_model, read_model, write_model
from sparknet.proto.solver import (
    SolverNets,
    check_construction,
    check_solver,
    solver_in_dialect,
    solver_nets,
)
from sparknet.proto.state_file import (
    SolverState,
    parse_state,
    read_state,
    state_model_path,
    write_state,
)
from sparknet.proto.text import (
    UnknownWarning,
    format_text,
    parse_net,
    parse_solver,
    parse_text,
    read_net,
    read_solver,
    read_text,
    write_text,
)
from sparknet.proto.upgrade import (
    UpgradeWarning,
    needs_upgrade,
    solver_needs_upgrade,
    upgrade_net,
    upgrade_solver,
)

__all__ = [
    "ForkWarning",
    "Model",
    "SolverNets",
    "SolverState",
    "UnknownWarning",
    "UpgradeWarning",
    "caffe_pb2",
    "check_construction",
    "check_solver",
    "copy_arrays",
    "format_text",
    "needs_upgrade",
    "parse_model",
    "parse_net",
    "parse_solver",
    "parse_state",
    "parse_text",
    "read_blob",
    "read_model",
    "read_net",
    "read_solver",
    "read_state",
    "read_text",
    "solver_in_dialect",
    "solver_needs_upgrade",
    "solver_nets",
    "state_model_path",
    "upgrade_net",
    "upgrade_solver",
    "write_blob",
    "write_model",
    "write_state",
    "write_text",
]

if not TYPE_CHECKING:
    __getattr__ = renamed.names(__name__, State=SolverState)
