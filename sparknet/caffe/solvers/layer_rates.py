"""Rates and decays by iteration or parameter, of NVIDIA's and Intel's solvers (sgd_solver.cpp)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]
TURBO = 0.95
"""How much of LARC's correlation is that of the steps before."""


def momentum(solver: caffe_pb2.SolverParameter, iteration: int, rate: float) -> float:
    """Return the momentum of an iteration: fixed, growing to max_momentum, or by the rate."""
    first: float = solver.momentum
    if solver.momentum_policy == "poly":
        done = iteration / solver.max_iter
        return first + (solver.max_momentum - first) * float(done**solver.momentum_power)
    if solver.momentum_policy == "opt":
        with np.errstate(invalid="ignore"):
            best = float((1 - 0.5 * np.sqrt(rate)) ** 2)
        return min(best, solver.max_momentum) if solver.HasField("max_momentum") else best
    return first


def weight_decay(solver: caffe_pb2.SolverParameter, iteration: int) -> float:
    first: float = solver.weight_decay
    if solver.weight_decay_policy != "poly":
        return first
    done = iteration / solver.max_iter
    return first + (solver.max_weight_decay - first) * float(done**solver.weight_decay_power)


class LocalRates:
    """Factors of the rate for each parameter, by the norms of its values and its gradient."""

    def __init__(self, count: int) -> None:
        self.correlations = np.zeros(count)

    @staticmethod
    def needed(solver: caffe_pb2.SolverParameter) -> bool:
        return bool(solver.larc or solver.local_lr_auto)

    def factors(
        self,
        solver: caffe_pb2.SolverParameter,
        given: Sequence[float],
        parts: Sequence[tuple[Array, Array, Array]],
        rate: float,
        momentum: float,
    ) -> list[float]:
        """Return a factor for each parameter (values, gradient, history); 0 stays 0."""
        factors = []
        for number, (factor, (values, gradient, history)) in enumerate(
            zip(given, parts, strict=True)
        ):
            size, slope = (float(np.linalg.norm(some)) for some in (values, gradient))
            local = 1.0
            if size > 0 and slope > 0:
                if solver.larc:
                    local = (1 - momentum) * solver.larc_eta * size / slope
                else:
                    local = solver.local_gw_ratio * size / (slope + solver.weight_decay * size)
            if solver.larc and solver.larc_turbo:
                local -= 0.9 * self._correlated(number, gradient, history, slope)
            if solver.larc and solver.larc_policy == "clip":
                local = min(rate, local) / rate if rate else 0.0
            factors.append(local if factor > 0 else factor)
        return factors

    def _correlated(self, number: int, gradient: Array, history: Array, slope: float) -> float:
        """Return how much the gradient points where the history does, smoothed over the steps."""
        size = float(np.linalg.norm(history))
        now = float(np.dot(gradient, history)) / (slope * size) if slope and size else 0.0
        self.correlations[number] = TURBO * self.correlations[number] + (1 - TURBO) * now
        return float(self.correlations[number])
