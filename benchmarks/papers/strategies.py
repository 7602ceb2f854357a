"""The strategies that published tables are made again with, by four workers."""

from __future__ import annotations

from typing import Any

from sparknet import Net, SolverParams, WeightCollection
from sparknet.training import AllReduce, Averaging, DiLoCo, DynamicAveraging, Strategy, simulate

WORKERS = 4
STRATEGIES: dict[str, Strategy] = {
    "Averaging": Averaging(10),
    "DiLoCo": DiLoCo(50),
    "DynamicAveraging": DynamicAveraging(),
    "AllReduce": AllReduce(10),
}


def workers_of(arm: str) -> int:
    return WORKERS if arm in STRATEGIES else 1


def train_by(
    arm: str,
    solver: SolverParams,
    records: dict[str, Any],
    steps: int,
    seed: int,
    *,
    weights: WeightCollection | None = None,
    device: str | None = None,
) -> Net:
    """Train by four workers with the strategy of this name, or by one; return the last net."""
    trained = simulate(
        solver,
        records,
        workers=workers_of(arm),
        strategy=STRATEGIES.get(arm, Averaging(10)),
        steps=steps,
        weights=weights,
        seed=seed,
        threads=1,
        device=device,
    )
    net = Net(solver, device=device)
    net.set_weights(trained.weights)
    return net
