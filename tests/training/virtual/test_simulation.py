"""simulate: the weights of a real run to the bit, and times that are the cluster's."""

import numpy as np
import pytest

from sparknet.errors import PeerLost, SettingError
from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.net import Net
from sparknet.net.learner import NetFeed, SolverLearner
from sparknet.training import Cluster, simulate, train
from sparknet.training.schedule import RunPlan
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Auto,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
)
from sparknet.training.virtual.cluster import Pace
from sparknet.training.workers.rounds import work
from tests.training import small

STEPS = 22
SOLVER = (
    'weight_decay: 0.01 clip_gradients: 0.5 iter_size: 2 lr_policy: "step" stepsize: 5 gamma: 0.5'
)
DETERMINISTIC: list[Strategy] = [
    AllReduce(steps=4),
    AllReduce(steps=4, codec="fp16"),
    Averaging(steps=4),
    Averaging(steps=4, momentum="average"),
    Averaging(steps=4, momentum="reset", warmup=5),
    Averaging(steps=4, codec="int8"),
    BMUF(steps=4),
    DiLoCo(steps=4),
    DiLoCo(steps=9, fragments=2, overlap=3, codec="int8"),
    DynamicAveraging(threshold=0.01, check_every=3),
    DynamicAveraging(threshold=0.5, check_every=3, measure="absolute", sync_at_least_every=9),
    ElasticAveraging(every=4),
    SlowMo(steps=4, codec="fp16"),
    SlowMo(steps=4, beta=0.5),
]


def solver(middle="", text=SOLVER):
    return small.settings(text, middle=middle)


def real(solver, strategy, size):
    """The weights of a run of `work` with a net for each worker, made as `worker` does."""

    def run(rank, comm):
        net = Net(solver, seed=7)
        order = Order(small.RECORDS, 0, True, rank, size)
        with Batches(small.records(), net.batch_size, order) as batches:
            learner = SolverLearner(net.solver, NetFeed(net, batches))
            net.backend.draw_apart(net.net, 7, rank)
            outcome = work(learner, strategy, comm, RunPlan(steps=STEPS))
            return small.weights(learner), outcome

    found = small.together(size, run)
    return found[0][0], [outcome for _, outcome in found]


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("strategy", DETERMINISTIC, ids=repr)
def test_weights_are_those_of_a_real_run(strategy, size):
    chosen = solver(small.BATCH_NORM + small.DROPOUT)
    weights, [outcome, *_] = real(chosen, strategy, size)
    made = simulate(chosen, small.records(), workers=size, strategy=strategy, steps=STEPS)
    assert np.array_equal(np.asarray(made.weights.flat), weights)
    assert made.outcome == outcome


def test_one_virtual_worker_is_plain_training():
    chosen = solver(small.DROPOUT)
    net = Net(chosen, seed=7)
    net.set_training_data(small.records())
    made = simulate(chosen, small.records(), workers=1, steps=STEPS, shuffle=False)
    net.train(STEPS)
    assert np.array_equal(np.asarray(made.weights.flat), np.asarray(net.get_weights().flat))


@pytest.mark.parametrize("strategy", [AllReduce(), Averaging(5)], ids=repr)
def test_processes_end_with_the_same_weights(strategy):
    given = {
        "workers": 2,
        "strategy": strategy,
        "steps": STEPS,
        "validation": small.records(20),
    }
    made = simulate(solver(), small.records(), **given)
    trained = train(solver(), small.records(), **given)
    assert np.array_equal(np.asarray(made.weights.flat), np.asarray(trained.weights.flat))
    assert made.outcome.metrics == pytest.approx(trained.outcome.metrics, rel=1e-6)


# -- time ------------------------------------------------------------------------------------


def rounds(made):
    return [event for event in made.history if event["event"] == "round"]


def test_a_round_takes_steps_and_a_synchronisation():
    """C = 2 s, a message 0.5 s, the bytes of a mean 2 · 2/3 · 4 n / 1000 s."""
    cluster = Cluster(step=2.0, latency=0.5, bandwidth=1000.0)
    made = simulate(
        solver(), small.records(), workers=3, cluster=cluster, strategy=Averaging(5), steps=10
    )
    floats = made.weights.flat.size
    sync = 3 * 0.5 + 2 * (2 / 3) * 4 * floats / 1000
    assert cluster.sync(4 * floats, 3) == pytest.approx(sync)
    for event in rounds(made):
        assert event["seconds_computing"] == pytest.approx(10.0)
        assert event["seconds_communicating"] == pytest.approx(sync)
        assert event["seconds_waiting"] == pytest.approx(0.5)
    reporting = 0.5
    assert [event["total_seconds"] for event in rounds(made)] == pytest.approx(
        [10 + sync, 2 * (10 + sync) + reporting]
    )


def test_a_given_synchronisation_takes_as_long():
    made = simulate(solver(), small.records(), workers=4, steps=1)
    nbytes = made.weights.flat.nbytes
    cluster = Cluster(step=1.0).with_sync(7.0, nbytes, 4)
    made = simulate(
        solver(), small.records(), workers=4, cluster=cluster, strategy=Averaging(2), steps=2
    )
    [event] = rounds(made)
    assert event["seconds_communicating"] == pytest.approx(7.0)


def test_a_straggler_makes_the_others_wait_and_is_named():
    cluster = Cluster(step=1.0, slow={1: 3.0}, latency=0.0, bandwidth=1e12)
    made = simulate(
        solver(), small.records(), workers=3, cluster=cluster, strategy=Averaging(4), steps=16
    )
    last = rounds(made)[-1]
    assert [one["seconds_computing"] for one in last["workers"]] == [4.0, 12.0, 4.0]
    waited = [one["seconds_waiting"] for one in last["workers"]]
    assert waited == pytest.approx([8.0, 0.0, 8.0])
    [slow] = [event for event in made.history if event["event"] == "slow"]
    assert (slow["worker"], slow["seconds"], slow["median"]) == (1, 3.0, 1.0)


def test_rounds_of_a_fixed_time_give_a_straggler_fewer_steps():
    cluster = Cluster(step=1.0, slow={1: 2.0})
    made = simulate(
        solver(),
        small.records(),
        workers=2,
        cluster=cluster,
        strategy=Averaging(seconds=8.0),
        steps=24,
    )
    assert [one["steps"] for one in rounds(made)[0]["workers"]] == [8, 4]


@pytest.mark.parametrize("strategy", [Downpour(steps=4), Auto(), Averaging(seconds=3.0)], ids=repr)
def test_what_depends_on_timing_is_the_same_in_every_run(strategy):
    cluster = Cluster(step=1.0, jitter=0.3, slow={2: 1.7})
    one, other = (
        simulate(
            solver(), small.records(), workers=3, cluster=cluster, strategy=strategy, steps=STEPS
        )
        for _ in range(2)
    )
    assert np.array_equal(np.asarray(one.weights.flat), np.asarray(other.weights.flat))
    assert one.history[-1]["total_seconds"] == other.history[-1]["total_seconds"]


def test_auto_takes_rounds_five_times_as_long_as_a_synchronisation():
    made = simulate(solver(), small.records(), workers=2, steps=1)
    cluster = Cluster(step=1.0).with_sync(6.0, made.weights.flat.nbytes, 2)
    made = simulate(
        solver(), small.records(), workers=2, cluster=cluster, strategy=Auto(), steps=1500
    )
    assert rounds(made)[-2]["steps"] == pytest.approx(30, rel=0.11)


def test_training_ends_after_simulated_seconds():
    made = simulate(solver(), small.records(), workers=2, cluster=Cluster(step=10.0), seconds=250.0)
    assert made.outcome.reason == "seconds"
    assert made.outcome.iteration == 30


def test_jitter_has_the_given_spread():
    pace = Pace(Cluster(step=2.0, jitter=0.2), 0)
    times = np.array([pace.step(0.0) for _ in range(4000)])
    assert times.mean() == pytest.approx(2.0, rel=0.02)
    assert times.std() / times.mean() == pytest.approx(0.2, rel=0.1)


# -- losses ----------------------------------------------------------------------------------


def test_a_lost_worker_costs_time_and_changes_no_weight():
    given = {"workers": 2, "strategy": Averaging(5), "steps": 40, "snapshot_every": 2}
    smooth = simulate(solver(), small.records(), cluster=Cluster(step=1.0), **given)
    cluster = Cluster(step=1.0, failures=[(1, 28.0)], restart=100.0)
    made = simulate(solver(), small.records(), cluster=cluster, **given)
    assert np.array_equal(np.asarray(made.weights.flat), np.asarray(smooth.weights.flat))
    [failure] = [event for event in made.history if event["event"] == "failure"]
    assert failure["worker"] == 1
    assert "lost after 28 s" in failure["message"]
    begins = [event for event in made.history if event["event"] == "workers"]
    assert [event["attempt"] for event in begins] == [1, 2]
    took = made.history[-1]["time"] - begins[0]["time"]
    assert 40 + 100 + 8 <= took <= 40 + 100 + 8 + 1  # 8 s of work after round 4 are lost


def test_failures_come_as_often_as_said():
    cluster = Cluster(step=1.0, mtbf=100.0, restart=5.0, seed=3)
    made = simulate(
        solver(), small.records(), workers=4, cluster=cluster, steps=400, snapshot_every=1
    )
    lost = sum(event["event"] == "failure" for event in made.history)
    assert 10 <= lost <= 26  # 4 workers for 400 s: 16 on average
    assert made.outcome.iteration == 400


def test_a_worker_that_is_lost_again_and_again_ends_the_run():
    cluster = Cluster(step=1.0, mtbf=1e-3, restart=0.0)
    with pytest.raises(PeerLost, match="snapshots come too seldom"):
        simulate(solver(), small.records(), workers=2, cluster=cluster, steps=10)


# -- what goes wrong -------------------------------------------------------------------------


def test_a_listener_that_fails_ends_the_run():
    def fail(event):
        if event["event"] == "round":
            raise ValueError("no more")

    with pytest.raises(RuntimeError, match="on_event failed at the event 'round'"):
        simulate(solver(), small.records(), workers=3, steps=50, on_event=fail)


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"step": -1.0}, "step must be at least 0, or None, not -1.0"),
        ({"bandwidth": 0.0}, "bandwidth must be more than 0, not 0.0"),
        ({"latency": float("nan")}, "latency must be at least 0, not nan"),
        ({"slow": {0: 0.0}}, "slow must be"),
    ],
)
def test_a_cluster_that_makes_no_sense_is_refused(settings, wrong):
    with pytest.raises(SettingError, match=wrong):
        Cluster(**settings)


def test_many_workers_meet_in_the_order_of_their_ranks():
    made = simulate(solver(), small.records(), workers=64, strategy=Averaging(1), steps=2)
    assert [event["samples"] for event in rounds(made)] == [64 * 8] * 2
    assert len(rounds(made)[0]["workers"]) == 64
