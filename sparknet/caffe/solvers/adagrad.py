"""AdaGrad: each weight's rate falls with the gradients it has seen."""

from __future__ import annotations

from typing import final

from sparknet.caffe.solvers.sgd import SGDSolver


@final
class AdaGradSolver(SGDSolver):
    """history += gradient²; weights -= rate · gradient / (√history + delta)."""

    type = "AdaGrad"
    rule = "adagrad"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.delta,)
