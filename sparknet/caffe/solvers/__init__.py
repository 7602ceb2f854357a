"""Caffe's solvers, one file for each: base, then each one's rule."""

from __future__ import annotations

from typing import Any

from sparknet.caffe.solvers.adadelta import AdaDeltaSolver
from sparknet.caffe.solvers.adagrad import AdaGradSolver
from sparknet.caffe.solvers.adam import AdamSolver
from sparknet.caffe.solvers.nesterov import NesterovSolver
from sparknet.caffe.solvers.rmsprop import RMSPropSolver
from sparknet.caffe.solvers.settings import SolverSource, settings
from sparknet.caffe.solvers.sgd import SGDSolver
from sparknet.caffe.solvers.solver import Solver
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

SOLVERS: dict[str, type[Solver]] = {
    kind.type: kind
    for kind in (
        AdaDeltaSolver,
        AdaGradSolver,
        AdamSolver,
        NesterovSolver,
        RMSPropSolver,
        SGDSolver,
    )
}


def get_solver(
    source: SolverSource, net: Any = None, *, precision: str = "float32", keep_blobs: bool = True
) -> Solver:
    """The solver of the type that a solver file, SolverParameter or `SolverParams` names."""
    chosen = settings(source, net)
    check_construction(chosen)
    return SOLVERS[chosen.type](chosen, precision=precision, keep_blobs=keep_blobs)


def solver_from_text(text: str, net: Any = None, *, precision: str = "float32") -> Solver:
    """The solver that a solver prototxt's text describes (ours, not pycaffe's)."""
    return get_solver(parse_solver(text), net, precision=precision)
