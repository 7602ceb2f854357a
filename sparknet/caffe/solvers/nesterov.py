"""Nesterov's accelerated gradient."""

from __future__ import annotations

from typing import final

from sparknet.caffe.solvers.solver import Solver


@final
class NesterovSolver(Solver):
    """SGD's history; weights -= (1 + momentum) · history - momentum · the history before."""

    type = "Nesterov"
    rule = "nesterov"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.momentum,)
