"""On Spark, too, every strategy comes within a point of one worker, for the same samples.

With four workers two of them stand for all; `python -m benchmarks.spark_strategies` measures each.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from benchmarks.spark_strategies import OnSpark, alone, on_spark
from benchmarks.strategies import STRATEGIES, measure

STEPS = 3600
"""That one worker makes: with four, fewer leave each of them too little to learn in."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("mnist")]


@cache
def run(spark: Any) -> OnSpark:
    return on_spark(spark)


@cache
def one_worker(spark: Any) -> float:
    return alone(run(spark), STEPS).accuracy


@pytest.mark.parametrize(
    ("name", "workers"),
    [
        *((name, 2) for name in STRATEGIES),
        ("Averaging(steps=10, codec='int8')", 4),
        ("AllReduce()", 4),
    ],
)
def test_within_a_point_of_one_worker(spark: Any, name: str, workers: int) -> None:
    row = measure(name, STRATEGIES[name], workers, STEPS, run(spark))
    assert row.steps == STEPS // workers
    assert row.accuracy >= one_worker(spark) - 0.01
