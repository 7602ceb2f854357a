"""Looks at each layer's weights and gradients: their numbers, and when they are taken."""

import json
from typing import Any

import numpy as np
import pytest

from sparknet.native import NDArray
from sparknet.training import AllReduce, Averaging, Cluster, ElasticAveraging, simulate, train
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.workers.metrics import BINS, COUNTED, look, summary
from sparknet.training.workers.rounds import work
from sparknet.weights import LayerBlobs, Layout, layout_of
from tests.training import small


def array(values):
    return NDArray.view(np.asarray(values, np.float32))


@pytest.mark.parametrize("size", [1, 2, 29, 5000, COUNTED])
def test_a_summary_is_that_of_numpy(size):
    values = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    found = summary(array(values))
    assert found["norm"] == pytest.approx(float(np.linalg.norm(values.astype(np.float64))))
    assert (found["low"], found["high"]) == (float(values.min()), float(values.max()))
    if size > 1:
        wide = values.astype(np.float64)
        counts, _ = np.histogram(wide, BINS, (float(wide.min()), float(wide.max())))
        assert np.abs(np.array(found["counts"]) - counts).max() <= 1  # at the bins' edges
    assert sum(found["counts"]) == size


def test_of_a_large_blob_values_far_apart_are_counted():
    values = np.arange(10 * COUNTED + 3, dtype=np.float32)
    found = summary(array(values))
    assert found["norm"] == pytest.approx(float(np.linalg.norm(values.astype(np.float64))))
    counts = np.array(found["counts"])
    assert 0.9 * COUNTED < counts.sum() <= COUNTED
    assert counts.max() - counts.min() <= 1
    assert found["high"] > 0.999 * values.size


@pytest.mark.parametrize(
    ("values", "counted"),
    [([0.0, 0.0], 2), ([3e38, -3e38, 1.0], 3), ([1e-45, 0.0], 2), ([np.nan, 1.0, 2.0], 2),
     ([np.inf, -np.inf], 0)],
)  # fmt: skip
def test_odd_values(values, counted):
    found = summary(array(values))
    assert sum(found["counts"]) == counted
    assert (found["norm"] is None) == (not np.isfinite(values).all())
    assert json.loads(json.dumps(found)) == found


def test_shared_parameters_appear_once():
    layers = tuple(LayerBlobs(name, ((2, 3), (3,)), (0, 6)) for name in ("a", "b"))
    found = look(Layout(layers), array(np.arange(9)), array(np.zeros(9)))
    assert [(one["layer"], one["blob"], one["size"]) for one in found] == [("a", 0, 6), ("a", 1, 3)]
    assert found[1]["weights"]["low"] == 6.0


# -- in training -----------------------------------------------------------------------------


def looks(events):
    return [event for event in events if event["event"] == "layers"]


def worked(strategy, **plan):
    """The weights of two workers after 20 iterations, and the events."""
    learners, events = [small.learner(rank, 2) for rank in range(2)], list[Any]()
    layout = layout_of(learners[0].solver.net)

    def one(rank, comm):
        hooks = Hooks(events.append, layout=layout)
        work(learners[rank], strategy, comm, RunPlan(steps=20, **plan), hooks)

    small.together(2, one)
    return small.weights(learners[0]), events


@pytest.mark.parametrize("strategy", [Averaging(4), AllReduce(4), ElasticAveraging(every=4)])
def test_every_rounds_worker_0_looks_at_its_first_gradient(strategy):
    """It is that of its next batch at its weights, and nothing else changes."""
    watched, events = worked(strategy, histograms_every=2)
    np.testing.assert_array_equal(watched, worked(strategy)[0])
    found = looks(events)
    assert [(event["round"], event["iteration"]) for event in found] == [(0, 0), (2, 8), (4, 16)]
    names = [(one["layer"], one["blob"]) for one in found[0]["parameters"]]
    assert names == [("ip1", 0), ("ip1", 1), ("ip2", 0), ("ip2", 1)]
    alone = small.learner(0, 2)
    weights = alone.weights.copy()
    alone.compute_gradient()
    want = look(layout_of(alone.solver.net), weights, alone.gradients)
    assert found[0]["parameters"] == want
    assert json.loads(json.dumps(found)) == found


def test_virtual_workers_tell_the_same():
    settings = {"workers": 2, "strategy": Averaging(5), "steps": 20, "histograms_every": 3}
    real = train(small.settings(), small.records(), threads=1, **settings)
    virtual = simulate(
        small.settings(), small.records(), threads=1, cluster=Cluster(step=1.0), **settings
    )
    told = [[one["parameters"] for one in looks(made.history)] for made in (real, virtual)]
    assert len(told[0]) == 2
    assert told[0] == told[1]
    assert [one["iteration"] for one in looks(virtual.history)] == [0, 15]
