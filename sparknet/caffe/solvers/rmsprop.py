"""RMSProp: AdaGrad that forgets."""

from __future__ import annotations

from typing import final

from sparknet.caffe.solvers.sgd import SGDSolver


@final
class RMSPropSolver(SGDSolver):
    """history = decay · history + (1 - decay) · gradient²; weights as in AdaGrad."""

    type = "RMSProp"
    rule = "rmsprop"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.rms_decay, self.param.delta)
