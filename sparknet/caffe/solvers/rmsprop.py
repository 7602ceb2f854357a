"""RMSProp: AdaGrad that forgets."""

from __future__ import annotations

from typing import final

from sparknet.caffe.solvers.solver import Solver


@final
class RMSPropSolver(Solver):
    """history = decay · history + (1 - decay) · gradient²; weights as in AdaGrad."""

    type = "RMSProp"
    rule = "rmsprop"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.rms_decay, self.param.delta)
