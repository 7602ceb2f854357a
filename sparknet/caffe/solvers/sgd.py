"""Gradient descent with momentum."""

from __future__ import annotations

from typing import final

from sparknet.caffe.solvers.solver import Solver


@final
class SGDSolver(Solver):
    """history = momentum · history + rate · gradient; weights -= history."""

    type = "SGD"
    rule = "sgd"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.momentum,)
