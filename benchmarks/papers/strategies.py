"""The strategies that published tables are made again with, by four workers."""

from __future__ import annotations

from sparknet.training import AllReduce, Averaging, DiLoCo, DynamicAveraging, Strategy

WORKERS = 4
STRATEGIES: dict[str, Strategy] = {
    "Averaging": Averaging(10),
    "DiLoCo": DiLoCo(50),
    "DynamicAveraging": DynamicAveraging(),
    "AllReduce": AllReduce(10),
}


def strategy_of(arm: str) -> Strategy:
    """Return the strategy of this name; one worker alone has plain averaging."""
    return STRATEGIES.get(arm, Averaging(10))
