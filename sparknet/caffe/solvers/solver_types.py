"""Caffe's solvers; native/include/sparknet/solver.h has the formulas."""

from __future__ import annotations

from typing import final

import numpy as np

from sparknet.caffe.solvers.layer_rates import momentum
from sparknet.caffe.solvers.solver import Solver


class SGDSolver(Solver):
    """Gradient descent with momentum: history = momentum · history + rate · gradient."""

    type = "SGD"
    rule = "sgd"

    def _settings(self) -> tuple[float, ...]:
        return (momentum(self.param, self.iter, self._next_rate()[0]),)


@final
class NesterovSolver(SGDSolver):
    """Nesterov's: weights -= (1 + momentum) · history - momentum · the history before."""

    type = "Nesterov"
    rule = "nesterov"


@final
class AdaGradSolver(SGDSolver):
    """history += gradient²; weights -= rate · gradient / (√history + delta)."""

    type = "AdaGrad"
    rule = "adagrad"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.delta,)


@final
class RMSPropSolver(SGDSolver):
    """AdaGrad that forgets: history = decay · history + (1 - decay) · gradient²."""

    type = "RMSProp"
    rule = "rmsprop"

    def _settings(self) -> tuple[float, ...]:
        return (self.param.rms_decay, self.param.delta)


@final
class AdaDeltaSolver(SGDSolver):
    """Steps as large as earlier ones relative to gradients, with ``momentum`` as decay."""

    type = "AdaDelta"
    rule = "adadelta"
    histories = 2

    def _settings(self) -> tuple[float, ...]:
        return (self.param.momentum, self.param.delta)


class AdamSolver(SGDSolver):
    """Momentum over RMSProp, corrected for the start at zero (``momentum``, ``momentum2``)."""

    type = "Adam"
    rule = "adam"
    histories = 2

    def _settings(self) -> tuple[float, ...]:
        first, second, time = self.param.momentum, self.param.momentum2, self.iter + 1
        with np.errstate(all="ignore"):
            correction = np.sqrt(1 - np.power(second, time)) / (1 - np.power(first, time))
        return (first, second, self.param.delta, float(np.float32(correction)))


@final
class AdamWSolver(AdamSolver):
    """Adam with decoupled decay: weights also lose rate · weight_decay of themselves.  Ours."""

    type = "AdamW"
    rule = "adamw"


_KINDS: tuple[type[Solver], ...] = (SGDSolver, *SGDSolver.__subclasses__(), AdamWSolver)

SOLVERS = {kind.type: kind for kind in _KINDS}
"""All of them, by the type that a solver file names."""
