"""Nesterov's accelerated gradient."""

from __future__ import annotations

from typing import final

from sparknet.caffe.solvers.sgd import SGDSolver


@final
class NesterovSolver(SGDSolver):
    """SGD's history; weights -= (1 + momentum) · history - momentum · the history before."""

    type = "Nesterov"
    rule = "nesterov"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.momentum,)
