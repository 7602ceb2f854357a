"""Workers that share a process: their weights are those of virtual time."""

import numpy as np
import pytest

from sparknet.errors import SettingError
from sparknet.training.local_training import train
from sparknet.training.strategies import AllReduce, Averaging, DiLoCo
from sparknet.training.virtual import simulate
from tests.training import small
from tests.training.test_training import nothing_is_left  # noqa: F401

MIDDLE = small.BATCH_NORM + small.DROPOUT
ADAM = small.settings('type: "Adam" base_lr: 0.01', middle=MIDDLE)
ARRAYS = dict(small.records().arrays)
RUN = {"workers": 4, "steps": 24, "threads": 1, "validation": ARRAYS}


def flat(trained):
    return np.array(trained.weights.flat)


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(Averaging(steps=4), id="averaging"),
        pytest.param(DiLoCo(steps=8, fragments=2, overlap=2, codec="int8"), id="streaming"),
        pytest.param(AllReduce(steps=4), id="allreduce"),
    ],
)
def test_weights_do_not_depend_on_hosts(strategy):
    expected = simulate(ADAM, ARRAYS, **RUN, strategy=strategy)
    for hosts in (1, 3):
        trained = train(ADAM, ARRAYS, **RUN, strategy=strategy, hosts=hosts)
        np.testing.assert_array_equal(flat(trained), flat(expected))
        assert trained.outcome.metrics == expected.outcome.metrics
        (event,) = trained.history.of_kind("workers")
        assert len({one["process"] for one in event["workers"]}) == hosts


def test_more_hosts_than_workers_are_refused():
    with pytest.raises(SettingError, match="hosts=3 is more than workers=2"):
        train(ADAM, ARRAYS, workers=2, hosts=3, steps=1)


@pytest.mark.parametrize("strategy", ["downpour", "auto", Averaging(seconds=1.0)])
def test_strategies_that_measured_times_decide_are_named(strategy):
    with pytest.warns(UserWarning, match="depends on measured times: with other hosts, or after"):
        train(ADAM, ARRAYS, workers=2, hosts=1, steps=2, strategy=strategy)
