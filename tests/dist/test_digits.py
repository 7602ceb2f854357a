"""On handwritten digits every strategy comes within a point of one worker, for the same samples."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.strategies import STRATEGIES, measure
from sparknet.dist import Averaging

STEPS = 2000
"""That one worker makes: DiLoCo is slow to begin."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("mnist")]


@cache
def alone() -> float:
    return measure("one worker", Averaging(10), 1, STEPS).accuracy


@pytest.mark.parametrize("name", STRATEGIES)
def test_within_a_point_of_one_worker(name: str) -> None:
    row = measure(name, STRATEGIES[name], 2, STEPS)
    assert row.steps == STEPS // 2
    assert row.accuracy >= alone() - 0.01
