"""On handwritten digits every strategy does in processes what virtual workers do, bit for bit.

How right they become after thousands of steps measures `python -m benchmarks.strategies`.
"""

import numpy as np
import pytest

from benchmarks.digits import TRAINED
from benchmarks.strategies import STRATEGIES, here, measure, records, solver
from sparknet.training import Auto, Downpour, simulate

STEPS = 60
"""Of each worker: beyond the longest rounds."""
TIMED = (Downpour, Auto)
"""Strategies whose weights depend on when a worker is ready."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("mnist")]


@pytest.mark.parametrize(
    "name", [name for name, one in STRATEGIES.items() if not isinstance(one, TIMED)]
)
def test_weights_are_those_of_virtual_workers(name):
    trained = here(STRATEGIES[name], 2, STEPS)
    made = simulate(
        solver(),
        records(slice(0, TRAINED)),
        workers=2,
        strategy=STRATEGIES[name],
        steps=STEPS,
        validation=records(slice(TRAINED, None)),
        validate_every=1 << 30,
    )
    np.testing.assert_array_equal(trained.weights.flat, made.weights.flat)
    assert trained.outcome.metrics == pytest.approx(made.outcome.metrics, rel=1e-5)
    assert trained.outcome.metrics["loss"] < 2  # 2.3 by guessing


@pytest.mark.parametrize("name", ["Downpour()", "Auto()"])
def test_what_depends_on_timing_learns(name):
    row = measure(name, STRATEGIES[name], 2, 500)
    assert row.steps == 250
    assert row.accuracy > 0.9
