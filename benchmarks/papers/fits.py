"""Amdahl's law and the Universal Scalability Law (Gunther, 1993), fitted to speed-ups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Fit:
    """K / (1 + σ (K - 1) + κ K (K - 1)); κ is 0 in Amdahl's law, whose serial part is σ."""

    name: str
    sigma: float
    kappa: float
    error: float
    """The root of the mean squared relative error."""

    def speedup(self, workers: float) -> float:
        return workers / (1 + self.sigma * (workers - 1) + self.kappa * workers * (workers - 1))

    @property
    def best(self) -> float:
        """The K beyond which more workers make it slower."""
        return float(np.sqrt((1 - self.sigma) / self.kappa)) if self.kappa > 0 else float("inf")


def fits(speedups: Mapping[int, float]) -> tuple[Fit, Fit]:
    """Both laws, with the least mean squared relative error."""
    workers = np.array(list(speedups), float)
    measured = np.array(list(speedups.values()), float)
    return (
        _judged("Amdahl", *_searched(workers, measured, False), workers, measured),
        _judged("USL", *_searched(workers, measured, True), workers, measured),
    )


def _searched(workers: Any, measured: Any, has_kappa: bool) -> tuple[float, float]:
    """The best σ and κ of a grid that becomes finer around them."""
    sigma, kappa, reach = 0.5, 0.05, 1.0
    for _ in range(60):
        sigmas = np.clip(sigma + 0.5 * reach * np.linspace(-1, 1, 21), 0, None)
        kappas = np.clip(kappa + 0.05 * reach * np.linspace(-1, 1, 21), 0, None)
        kappas = kappas if has_kappa else np.zeros(1)
        made = workers / (
            1
            + sigmas[:, None, None] * (workers - 1)
            + kappas[None, :, None] * workers * (workers - 1)
        )
        errors = np.mean((made / measured - 1) ** 2, axis=2)
        first, second = np.unravel_index(np.argmin(errors), errors.shape)
        sigma, kappa = float(sigmas[first]), float(kappas[second])
        reach *= 0.8
    return sigma, kappa


def _judged(name: str, sigma: float, kappa: float, workers: Any, measured: Any) -> Fit:
    fit = Fit(name, sigma, kappa, 0.0)
    made = np.array([fit.speedup(one) for one in workers])
    return Fit(name, sigma, kappa, float(np.sqrt(np.mean((made / measured - 1) ** 2))))
