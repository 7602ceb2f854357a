"""On Spark, every strategy does what virtual workers do that see the same digits, bit for bit.

With four workers two of them stand for all.  How right they become after thousands of steps
measures `python -m benchmarks.spark_strategies`.
"""

from functools import cache

import numpy as np
import pytest

from benchmarks.digits import TRAINED
from benchmarks.spark_strategies import OnSpark, on_spark
from benchmarks.strategies import BATCH, STRATEGIES, measure, records, solver
from sparknet.training import Auto, Downpour, simulate
from tests.net import public_caffe
from tests.spark.round_robin import deal

BACKENDS = ["embedded", public_caffe.__name__]
TIMED = (Downpour, Auto)
"""Strategies whose weights depend on when a worker is ready."""
STEPS = {2: 60, 4: 30}
"""Of each worker, by their number: beyond the longest rounds, and less than an epoch."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("mnist")]


@cache
def run(spark):
    return on_spark(spark)


@cache
def hands(spark, workers):
    """The digits that so many workers see."""
    data = run(spark)
    trained = records(slice(0, TRAINED))
    return deal(trained, data.training, data.validation, workers, BATCH * STEPS[workers])


@cache
def virtual(spark, name, workers):
    return simulate(
        solver(),
        hands(spark, workers),
        workers=workers,
        strategy=STRATEGIES[name],
        steps=STEPS[workers],
        validation=records(slice(TRAINED, None)),
        validate_every=1 << 30,
        shuffle=False,
        threads=1,
    )


def same(spark, name, workers, backend):
    """Validation is a mean of the workers' parts there, of all digits at once here."""
    data = run(spark)
    here = virtual(spark, name, workers)
    there = OnSpark(data.training, data.validation, backend)(
        STRATEGIES[name], workers, STEPS[workers]
    )
    np.testing.assert_array_equal(there.weights.flat, here.weights.flat)
    assert there.outcome.iteration == STEPS[workers]
    assert there.outcome.metrics == pytest.approx(here.outcome.metrics, rel=1e-5)
    assert there.outcome.metrics["loss"] < 2  # 2.3 by guessing


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "name", [name for name, one in STRATEGIES.items() if not isinstance(one, TIMED)]
)
def test_weights_are_those_of_virtual_workers(spark, name, backend):
    same(spark, name, 2, backend)


@pytest.mark.parametrize("name", ["Averaging(steps=10, codec='int8')", "AllReduce()"])
def test_weights_of_four_workers(spark, name):
    same(spark, name, 4, "embedded")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["Downpour()", "Auto()"])
def test_what_depends_on_timing_learns(spark, name, backend):
    data = run(spark)
    given = OnSpark(data.training, data.validation, backend)
    row = measure(name, STRATEGIES[name], 2, 500, given)
    assert row.steps == 250
    assert row.accuracy > 0.9
