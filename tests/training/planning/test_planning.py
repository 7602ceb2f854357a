"""plan: what is predicted is what virtual and real runs take, and the advice follows from it."""

import json
from functools import partial

import numpy as np
import pytest

import sparknet
from sparknet.caffe.solvers.nets import settings
from sparknet.errors import SettingError
from sparknet.loaders.records import ArrayRecords
from sparknet.net import Net
from sparknet.training import Cluster, simulate
from sparknet.training.planning import Measured, plan, predict, trial
from sparknet.training.planning import measurement as measuring
from sparknet.training.planning import subject as batches
from sparknet.training.planning.advice import advised, short, tried_row
from sparknet.training.planning.measurement import extrapolated, summary
from sparknet.training.planning.subject import made_up, with_batch
from sparknet.training.planning.trials import compared
from sparknet.training.strategies import (
    STRATEGIES,
    AllReduce,
    Averaging,
    DiLoCo,
    DynamicAveraging,
    SlowMo,
)
from sparknet.training.strategies.auto import Costs
from tests.training import small

CLUSTER = Cluster(step=0.5, latency=0.1, bandwidth=400.0, slow={1: 1.5})


@pytest.mark.parametrize(
    "strategy",
    [AllReduce(4), Averaging(1), Averaging(5), Averaging(5, codec="fp16"), SlowMo(5)],
    ids=repr,
)
@pytest.mark.parametrize("workers", [2, 4])
def test_predictions_are_the_times_of_training(strategy, workers):
    made = simulate(
        small.settings(),
        small.records(),
        workers=workers,
        strategy=strategy,
        cluster=CLUSTER,
        steps=40,
    )
    rounds = [event for event in made.history if event["event"] == "round"]
    first, *_, last = rounds
    steps = last["iteration"] - first["iteration"]
    foreseen = predict(strategy, CLUSTER, workers, made.weights.flat.nbytes)
    took = (last["total_seconds"] - first["total_seconds"]) / steps
    assert foreseen.seconds == pytest.approx(took, rel=0.02)
    sent = sum(event["bytes_sent"] for event in rounds[1:]) / workers / steps
    assert foreseen.bytes == pytest.approx(sent, rel=0.1)


@pytest.mark.parametrize(
    ("strategy", "workers"),
    [
        (DiLoCo(20, fragments=4, codec="int8"), 3),
        (DiLoCo(20, fragments=10, overlap=1, codec="int8"), 3),
        (Averaging(20, codec="int8"), 40),
    ],
    ids=repr,
)
def test_the_bytes_of_coded_weights(strategy, workers):
    """A byte for each number and four for 256 of them, sent to the others and back."""
    numbers = 1 << 20
    foreseen = predict(strategy, CLUSTER, workers, 4 * numbers)
    share = (workers - 1) / workers
    assert foreseen.bytes == pytest.approx(2 * share * numbers * (1 + 4 / 256) / 20, rel=1e-3)


def test_averaging_takes_the_slowest_worker_and_a_share_of_the_synchronisation():
    cluster = Cluster(step=2.0, slow={1: 1.5}).with_sync(10.0, 1000, 4)
    foreseen = predict(Averaging(20), cluster, 4, 1000)
    assert foreseen.seconds == pytest.approx(3.0 + 10 / 20)
    assert foreseen.share == pytest.approx((10 + 20 * 3 / 4) / (20 * 3 + 10))


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_is_predicted(name):
    foreseen = predict(STRATEGIES[name](), CLUSTER, 3, 4000)
    assert 0.5 < foreseen.seconds < 100
    assert 0 <= foreseen.share < 1


# -- what is measured ------------------------------------------------------------------------


def worker(steps, computing, communicating, waiting):
    return {
        "steps": steps,
        "seconds_computing": computing,
        "seconds_communicating": communicating,
        "seconds_waiting": waiting,
    }


def test_costs_come_from_rounds():
    """C is 1 s and 2 s; a message takes 0.5 s, the bytes 3 s; worker 0 waits 5 s for worker 1."""
    rounds = [[worker(5, 5.0, 8.5, 5.5), worker(5, 10.0, 3.5, 0.5)]] * 8
    found = summary(rounds, 64)
    assert found.step == 1.5
    assert found.slow == (0.6667, 1.3333)
    assert found.latency == 0.5
    assert found.transfer == 3.0
    assert found.sync == 6.0
    assert found.costs.length() == 20
    assert (found.jitter, found.error) == (0.0, 0.0)
    again = predict(Averaging(5), found.cluster(1000), 2, 1000)
    assert 5 * again.seconds == pytest.approx(13.5 + 0.5, rel=0.05)  # and the round's report


def test_a_round_that_took_far_too_long_does_not_count():
    rounds = [[worker(1, 1.0, 1.0, 0.0)] * 2] * 9 + [[worker(1, 90.0, 1.0, 0.0)] * 2]
    assert summary(rounds, 8).step == 1.0


def of_batch(batch: int, step: float) -> Measured:
    return Measured(2, batch, step, (1.0, 1.0), 0.0, 0.1, 0.2, 0.3, 1, 5, 0.04)


def test_long_steps_are_calculated_from_smaller_batches():
    found = extrapolated(of_batch(8, 1.0), of_batch(16, 1.8), 64)
    assert (found.step, found.batch, found.calculated) == (pytest.approx(6.6), 64, True)
    assert found.error == pytest.approx((1.8 * 4 - 6.6) / 6.6)
    steep = extrapolated(of_batch(8, 0.5), of_batch(16, 2.0), 64)
    assert steep.step == pytest.approx(8.0)  # no record costs more than its share


def test_lengths_follow_sparknets_advice():
    assert Costs(2.0, 8.0).length() == 20
    assert Costs(2.0, 0.0).length() == 1
    assert Costs(0.0, 1.0).length() == 500
    assert Costs(2.0, 8.0).share(20) == pytest.approx(1 / 6)


def test_a_net_takes_other_batches():
    net = Net(small.settings(), seed=1)
    larger = Net(with_batch(net, 10), seed=1)
    assert [one.shape for one in larger.inputs.values()] == [(10, 3), (10, 2)]
    larger.set_training_data(made_up(larger, 30))
    larger.train(2)


def test_records_that_are_made_up_fit_into_the_memory(monkeypatch):
    """Seven rows of three float32, the larger of the two inputs."""
    monkeypatch.setattr(batches, "_MOST_BYTES", 7 * 4 * 3 + 11)
    assert len(made_up(Net(small.settings(), seed=1), 30)) == 7


@pytest.mark.parametrize(
    ("pass_seconds", "batch", "measured"),
    [
        (0.01, 4, [(4, 5, 6.0)]),
        (0.05, 8, [(8, 1, 6.0)]),
        (0.0, 4, [(4, 10, 6.0)]),
        (0.1, 64, [(10, 1, 3.0), (20, 1, 3.0)]),
    ],
)
def test_how_many_steps_a_measured_round_has(pass_seconds, batch, measured, monkeypatch):
    asked = []

    def noted(run, solver, workers, *rest):
        asked.append(rest)
        return of_batch(rest[0], 0.1 * rest[0])

    monkeypatch.setattr(measuring, "measured", noted)
    monkeypatch.setattr(measuring, "usable_cores", lambda: 2)
    run = None
    net = Net(small.settings(), seed=1)
    assert (
        measuring.measure(run, partial(with_batch, net), 2, batch, pass_seconds, 6.0).batch == batch
    )
    assert asked == measured


# -- the advice ------------------------------------------------------------------------------


def planned(**given):
    return plan(small.settings(), **{"workers": [1, 4], **given})


@pytest.fixture(scope="module")
def quiet():
    """A plan for little traffic."""
    cluster = Cluster(step=1.0, latency=0.0, bandwidth=1e3)
    return planned(cluster=cluster, records=9600, target="traffic")


def test_the_advice_follows_the_network():
    """Here the weights are 128 bytes: a mean takes 1.5 · 128 B / bandwidth."""
    lengths = []
    for bandwidth in (1e6, 1e3):
        made = planned(workers=4, cluster=Cluster(step=0.01, latency=0.0, bandwidth=bandwidth))
        lengths.append(1 if isinstance(made.strategy, AllReduce) else made.strategy.steps)
    assert lengths[0] < 5 < 20 < lengths[1]


def test_targets_differ(quiet):
    fast, cheap, few = (advised(quiet.rows, [], t)[0] for t in ("time", "cost", "traffic"))
    assert (quiet.strategy, quiet.workers) == (few.strategy, few.workers)
    assert fast.workers == 4
    assert cheap.workers == 1
    sent = {row.strategy: row.megabytes for row in quiet.rows if row.workers == few.workers}
    assert sent[few.strategy] <= sent.get(fast.strategy, 1e9)


def test_the_prediction_is_told_as_text_and_json(quiet):
    text = str(quiet)
    assert "small: 0.000128 MB of weights, 9,600 records" in text
    assert f"advice: {short(quiet.strategy)}, {quiet.workers} worker" in text
    row = next(row for row in quiet.rows if row.strategy == Averaging(10) and row.workers == 4)
    assert row.epoch == pytest.approx(row.iteration * 9600 / 16)
    assert json.loads(json.dumps(quiet.to_json()))["advice"] == short(quiet.strategy)
    assert "how many iterations an accuracy needs is a rule of thumb here" in text


def test_dynamic_averaging_lies_between_no_synchronisation_and_one_at_every_check(quiet):
    rows = [row for row in quiet.rows if row.workers == 4]
    never, always = (row for row in rows if isinstance(row.strategy, DynamicAveraging))
    static = next(row for row in rows if row.strategy == Averaging(10))
    assert never.megabytes < 0.01 * static.megabytes
    assert always.megabytes == pytest.approx(static.megabytes, rel=0.01)
    assert never.iteration < static.iteration <= always.iteration < 1.2 * static.iteration
    [note] = quiet.notes
    assert note in str(quiet)
    assert quiet.to_json()["notes"] == [note]
    assert planned(workers=1, cluster=CLUSTER).notes == []


def test_trials_find_how_many_iterations_an_accuracy_needs():
    solver, records = lines(), points(2000)
    slow = Cluster(step=0.01, latency=0.0, bandwidth=100.0)
    made = plan(
        solver,
        records,
        workers=2,
        cluster=slow,
        validation=points(400),
        accuracy=0.95,
        trial=20.0,
    )
    reached = [one for one in made.trials if one.reached]
    assert all(one.accuracy >= 0.95 for one in reached)
    best = min(reached, key=lambda one: one.seconds)
    assert (made.strategy, made.workers) == (best.strategy, best.workers)
    every = trial(solver, records, points(400), Averaging(1), 2, slow, 0.95)
    assert every.seconds >= best.seconds


def test_trials_are_means_over_seeds_that_the_candidates_share():
    """Each seed is the run that `trial` makes of it by itself."""
    solver, records, held = lines(), points(2000), points(400)
    cluster = Cluster(step=0.01, latency=0.0, bandwidth=1e4)
    candidates = [(Averaging(steps), 2, cluster) for steps in (5, 6)]
    found = compared(solver, records, held, candidates, 0.97, 60.0, 3)
    assert [one.seeds for one in found] == [3, 3]
    for (strategy, *_), joined in zip(candidates, found, strict=True):
        alone = []
        for seed in range(3):
            other = settings(solver)
            other.random_seed = 3 + seed
            alone.append(trial(other, records, held, strategy, 2, cluster, 0.97, seed=seed).seconds)
        assert list(joined.by_seed.values()) == alone
        assert len(set(alone)) > 1
        assert joined.seconds == pytest.approx(np.mean(alone))
        assert joined.seconds_error == pytest.approx(np.std(alone, ddof=1) / 3**0.5)
    text = "  ".join(tried_row(found[0]))
    assert "±" in text
    assert "  3  " in text


def test_a_plan_is_measured_in_real_processes():
    made = sparknet.plan(small.settings(), small.records(), workers=2, batches=[4, 8], seconds=1.0)
    assert [(one.workers, one.batch) for one in made.measured] == [(2, 4), (2, 8)]
    for one in made.measured:
        assert 0 < one.step < 0.1
        assert 0 < one.transfer <= one.sync < 1
    assert made.records == small.RECORDS


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"target": "speed"}, "target must be 'time', 'cost' or 'traffic', not 'speed'"),
        ({"workers": 0}, "workers must be whole numbers of at least 1, not 0"),
        ({"batches": []}, r"batches must be whole numbers of at least 1, not \[\]"),
        ({"accuracy": 0.9}, "accuracy=0.9 needs data and validation data"),
    ],
)
def test_what_makes_no_sense_is_refused(given, wrong):
    with pytest.raises(SettingError, match=wrong):
        planned(**given)


def test_settings_that_are_not_the_usual_ones_are_told():
    assert short(Averaging(10)) == "Averaging(steps=10)"
    assert short(Averaging(5, codec="int8")) == "Averaging(codec='int8', steps=5)"
    assert short(DynamicAveraging()) == "DynamicAveraging()"


def lines():
    return sparknet.SolverParams(
        net=sparknet.NetParams(
            "lines",
            sparknet.RDDLayer("data", shape=[16, 2]),
            sparknet.RDDLayer("label", shape=[16]),
            sparknet.LinearLayer("ip", "data", num_outputs=2, weight_filler="xavier"),
            sparknet.SoftmaxWithLoss("loss", ["ip", "label"]),
            sparknet.Accuracy("accuracy", ["ip", "label"], phase="TEST"),
        ),
        base_lr=0.1,
        lr_policy="fixed",
        random_seed=3,
    )


def points(count: int) -> ArrayRecords:
    data = np.random.default_rng(count).normal(size=(count, 2)).astype(np.float32)
    return ArrayRecords(data=data, label=(data[:, 0] > data[:, 1]).astype(np.float32))
