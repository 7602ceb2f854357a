"""AdaDelta: steps as large as earlier steps were, relative to earlier gradients."""

from __future__ import annotations

from typing import final

from sparknet.caffe.solvers.sgd import SGDSolver


@final
class AdaDeltaSolver(SGDSolver):
    """Means of squared gradients and of squared steps, with ``momentum`` as their decay."""

    type = "AdaDelta"
    rule = "adadelta"
    histories = 2

    def _settings(self) -> tuple[float, ...]:
        return (self.param.momentum, self.param.delta)
