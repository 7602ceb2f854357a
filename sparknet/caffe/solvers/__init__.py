"""Caffe's solvers: a loop that all share (solver.py), and each one's rule (solver_types.py)."""

from __future__ import annotations

from sparknet.caffe.precision import Precision
from sparknet.caffe.solvers.nets import NetSource, SolverSource, settings
from sparknet.caffe.solvers.solver import Solver
from sparknet.caffe.solvers.solver_types import (
    SOLVERS,
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
)
from sparknet.proto import check_construction, parse_solver

__all__ = [
    "SOLVERS",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "get_solver",
    "solver_from_text",
]


def get_solver(
    source: SolverSource,
    net: NetSource = None,
    *,
    precision: Precision = "float32",
    keep_blobs: bool = True,
    device: str | None = None,
) -> Solver:
    """Return the solver of the type that a solver file, SolverParameter or `SolverParams` names."""
    param = settings(source, net)
    check_construction(param)
    return SOLVERS[param.type](param, precision=precision, keep_blobs=keep_blobs, device=device)


def solver_from_text(
    text: str, net: NetSource = None, *, precision: Precision = "float32"
) -> Solver:
    """Return the solver that a solver prototxt's text describes (ours, not pycaffe's)."""
    return get_solver(parse_solver(text), net, precision=precision)
