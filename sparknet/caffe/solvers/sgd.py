"""Gradient descent with momentum."""

from __future__ import annotations

from sparknet.caffe.solvers.solver import Solver


class SGDSolver(Solver):
    """history = momentum · history + rate · gradient; weights -= history.

    The other solvers are kinds of it, as in pycaffe.
    """

    type = "SGD"
    rule = "sgd"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.momentum,)
