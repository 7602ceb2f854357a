"""Amdahl's law and the Universal Scalability Law (Gunther, 1993), fitted to speed-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Fit:
    """T(K) = T(1) (1 + σ (K - 1) + κ K (K - 1)) / K; κ is 0 in Amdahl's law."""

    name: str
    first: float
    """T(1), which is fitted too: one worker alone pays for no synchronisation."""
    sigma: float
    kappa: float
    error: float
    """The root of the mean squared relative error."""

    def seconds(self, workers: float) -> float:
        return self.first / workers * float(_cost(workers, self.sigma, self.kappa))

    @property
    def best(self) -> float:
        """The K beyond which more workers make it slower."""
        return float(np.sqrt((1 - self.sigma) / self.kappa)) if self.kappa > 0 else float("inf")


def fits(times: Mapping[int, float]) -> tuple[Fit, Fit]:
    """Both laws, with the least mean squared relative error."""
    workers, measured = np.array(list(times), float), np.array(list(times.values()), float)
    return _searched("Amdahl", workers, measured, 0.0), _searched("USL", workers, measured, 0.05)


def _searched(name: str, workers: Any, measured: Any, kappa: float) -> Fit:
    """The best σ and κ of a grid that becomes finer around them; κ stays 0 where it is."""
    found, reach = Fit(name, 1.0, 0.5, kappa, float("inf")), 1.0
    has_kappa = kappa > 0
    for _ in range(80):
        sigmas = np.clip(found.sigma + 0.5 * reach * np.linspace(-1, 1, 21), 0, 1)
        kappas = np.clip(found.kappa + 0.05 * reach * np.linspace(-1, 1, 21), 0, None)
        for sigma in sigmas:
            for kappa in kappas if has_kappa else (0.0,):
                shape = _cost(workers, sigma, kappa) / workers / measured
                first = float(shape.sum() / (shape @ shape))
                error = float(np.sqrt(np.mean((first * shape - 1) ** 2)))
                if error < found.error:
                    found = Fit(name, first, float(sigma), float(kappa), error)
        reach *= 0.85
    return found


def _cost(workers: Any, sigma: float, kappa: float) -> Any:
    return 1 + sigma * (workers - 1) + kappa * workers * (workers - 1)
