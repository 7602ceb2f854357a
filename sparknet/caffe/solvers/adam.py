"""Adam: momentum over RMSProp, corrected for the histories' start at zero."""

from __future__ import annotations

from typing import final

import numpy as np

from sparknet.caffe.solvers.sgd import SGDSolver


@final
class AdamSolver(SGDSolver):
    """Means of gradients (``momentum``) and of their squares (``momentum2``)."""

    type = "Adam"
    rule = "adam"
    histories = 2

    def _settings(self) -> tuple[float, ...]:
        first, second, time = self.param.momentum, self.param.momentum2, self.iter + 1
        with np.errstate(all="ignore"):
            correction = np.sqrt(1 - np.power(second, time)) / (1 - np.power(first, time))
        return (first, second, self.param.delta, float(np.float32(correction)))
