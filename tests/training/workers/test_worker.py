"""The loop: where it ends, what it says, what it looks at."""

import json

import numpy as np
import pytest

from sparknet.comm.local_comm import LocalComm
from sparknet.errors import Diverged, SettingError
from sparknet.training.checkpoints.store import FolderStore
from sparknet.training.schedule import Hooks, RunPlan, steps_for
from sparknet.training.strategies import (
    BMUF,
    AllReduce,
    Averaging,
    DiLoCo,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    make_strategy,
)
from sparknet.training.workers.rounds import work
from tests.training import small


def run(plan, size=2, strategy=None, **hooks):
    """The events, and each worker's outcome."""
    events = []

    def one(rank, comm):
        mine = Hooks(on_event=events.append, **{name: of(rank) for name, of in hooks.items()})
        return work(learners[rank], strategy or Averaging(steps=5), comm, plan, mine)

    learners = [small.learner(rank, size) for rank in range(size)]
    outcomes = small.together(size, one)
    return events, outcomes


def kinds(events):
    return [event["event"] for event in events]


def test_events_say_what_happened():
    plan = RunPlan(steps=12, records=small.RECORDS, batch_size=4, net="small")
    events, outcomes = run(plan, 3)
    assert kinds(events) == ["start", "round", "round", "round", "stop"]
    start, *rounds, stop = events
    assert start["workers"] == 3
    assert start["strategy"] == "averaging"
    assert start["settings"]["steps"] == 5
    assert start["net"] == "small"
    assert [event["iteration"] for event in rounds] == [5, 10, 12]
    assert [event["steps"] for event in rounds] == [5, 5, 2]
    assert [event["samples"] for event in rounds] == [60, 60, 24]
    assert [event["epoch"] for event in rounds] == [60 / 96, 120 / 96, 144 / 96]
    for event in rounds:
        workers = event["workers"]
        assert len(workers) == 3
        assert all(one["bytes_sent"] > 0 for one in workers)
        assert event["bytes_sent"] == sum(one["bytes_sent"] for one in workers)
        assert event["loss"] == pytest.approx(np.mean([one["loss"] for one in workers]))
        assert event["divergence"] == max(one["divergence"] for one in workers) > 0
        assert event["seconds_computing"] > 0
        assert event["seconds_communicating"] > 0
    assert stop["reason"] == "steps"
    assert stop["total_samples"] == 144
    assert 0 < stop["communication"] < 1
    assert json.loads(json.dumps(events)) == events
    assert {(one.reason, one.iteration, one.samples) for one in outcomes} == {("steps", 12, 144)}


@pytest.mark.parametrize("strategy", [Averaging(5), DynamicAveraging(1e9, check_every=5),
                                      DynamicAveraging(0, check_every=5)], ids=repr)  # fmt: skip
def test_the_totals_are_what_the_transport_sent(strategy, tmp_path):
    """The first weights, validations and snapshots apart: some validations take a full mean."""
    events = []
    learners = [small.learner(rank, 4) for rank in range(4)]
    comms = LocalComm.group(4)
    plan = RunPlan(steps=20, validate_every=1, snapshot_every=2)

    def one(rank, comm):
        hooks = Hooks(events.append, lambda: (1, {"loss": 1.0}), store=FolderStore(tmp_path))
        return work(learners[rank], strategy, comm, plan, hooks)

    small.together(4, one, comms)
    mean = 2 * 3 * learners[0].weights.nbytes
    validations = [event["bytes_sent"] for event in events if event["event"] == "validation"]
    whole = isinstance(strategy, DynamicAveraging) and strategy.threshold > 0
    assert validations == ([mean] * 4 if whole else [0] * 4)
    stop = events[-1]
    assert stop["total_bytes_validating"] == sum(validations)
    assert stop["total_bytes_starting"] == 3 * learners[0].weights.nbytes
    assert stop["total_bytes_sent"] == (mean if whole else 4 * mean)
    saved = [event["bytes_sent"] for event in events if event["event"] == "snapshot"]
    assert len(saved) == 2
    assert stop["total_bytes_saving"] == sum(saved)
    others = ("starting", "validating", "saving")
    sent = sum(comm.traffic.sent for comm in comms)
    assert stop["total_bytes_sent"] + sum(stop[f"total_bytes_{one}"] for one in others) == sent


def test_time_ends_it():
    events, _ = run(RunPlan(seconds=0.05), 2, Averaging(seconds=0.01))
    assert events[-1]["reason"] == "seconds"
    assert events[-2]["total_seconds"] >= 0.05 > events[-3].get("total_seconds", 0)


def test_interruption_on_one_worker_ends_all():
    asked = []

    def interrupted(rank):
        def ask() -> bool:
            asked.append(rank)
            return rank == 1 and asked.count(1) == 3

        return ask

    events, _ = run(RunPlan(steps=1000), interrupted=interrupted)
    assert events[-1]["reason"] == "interrupted"
    assert events[-1]["iteration"] == 15


@pytest.mark.parametrize("strategy", [Averaging(5), ElasticAveraging(every=5),
                                      DynamicAveraging(1e9, check_every=5)])  # fmt: skip
def test_validation_is_of_the_same_model_on_all(strategy):
    """Its parts are weighed by records; local weights are back afterwards."""
    seen: dict[int, list[float]] = {0: [], 1: []}
    learners = [small.learner(rank, 2) for rank in range(2)]

    def validate(rank: int) -> tuple[int, dict[str, float]]:
        value = learners[rank].weights.norm2()
        seen[rank].append(value)
        return 10 * (rank + 1), {"rank": float(rank), "norm": value}

    events = []
    plan = RunPlan(steps=12, validate_every=2)
    small.together(
        2,
        lambda rank, comm: work(
            learners[rank], strategy, comm, plan, Hooks(events.append, lambda: validate(rank))
        ),
    )
    found = [event for event in events if event["event"] == "validation"]
    assert [event["iteration"] for event in found] == [10, 12]
    assert all(event["records"] == 30 for event in found)
    assert all(event["metrics"]["rank"] == pytest.approx(2 / 3) for event in found)
    assert seen[0] == seen[1] == [pytest.approx(event["metrics"]["norm"]) for event in found]


def test_patience():
    scores = iter([0.5, 0.7, 0.6, 0.65, 0.7, 0.1])
    outcome = run(
        RunPlan(steps=1000, validate_every=1, patience=3, metric="accuracy", goal="max"),
        1,
        validate=lambda rank: lambda: (4, {"loss": 1.0, "accuracy": next(scores)}),
    )
    events = [event for event in outcome[0] if event["event"] == "validation"]
    assert [event["best"] for event in events] == [True, True, False, False, False]
    assert outcome[0][-1]["reason"] == "patience"


def judged(size, strategy, scores, **plan):
    """Events; what each validation saw as worker 0's weights; all workers' last ones; outcomes."""
    learners = [small.learner(rank, size) for rank in range(size)]
    seen = []
    events = []

    def validate(rank: int) -> tuple[int, dict[str, float]]:
        if rank:
            return 1, {"accuracy": 0.0}
        seen.append(small.weights(learners[0]))
        return 1, {"accuracy": scores[len(seen) - 1] * size}

    def one(rank, comm):
        hooks = Hooks(events.append, lambda: validate(rank))
        return work(
            learners[rank], strategy, comm, RunPlan(validate_every=1, goal="max", **plan), hooks
        )

    outcomes = small.together(size, one)
    return events, seen, [small.weights(learner) for learner in learners], outcomes


STRATEGIES = [Averaging(5), ElasticAveraging(every=5), DynamicAveraging(1e9, check_every=5)]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize("size", [1, 2])
def test_with_patience_the_best_weights_are_left(size, strategy):
    scores = [0.5, 0.75, 0.625, 0.25, 0.5]
    events, seen, left, outcomes = judged(size, strategy, scores, steps=1000, patience=2)
    assert len(seen) == 4
    for weights in left:
        np.testing.assert_array_equal(weights, seen[1])
    assert events[-1]["reason"] == "patience"
    assert (events[-1]["iteration"], events[-1]["best"]) == (20, 10)
    for outcome in outcomes:
        assert (outcome.iteration, outcome.best, outcome.metrics) == (20, 10, {"accuracy": 0.75})


def test_the_best_weights_are_left_however_it_ends():
    events, seen, left, (outcome,) = judged(1, Averaging(5), [0.75, 0.5], steps=10, patience=9)
    np.testing.assert_array_equal(left[0], seen[0])
    assert (events[-1]["reason"], events[-1]["best"], outcome.best) == ("steps", 5, 5)
    assert events[-1]["iteration"] == 10


@pytest.mark.parametrize(("scores", "patience"), [([0.5, 0.75], 9), ([0.75, 0.5], None),
                                                  ([np.nan, np.nan], 9)])  # fmt: skip
def test_the_last_weights_are_left(scores, patience):
    """They are the best; or nobody asked for the best; or there is none."""
    events, seen, left, (outcome,) = judged(1, Averaging(5), scores, steps=10, patience=patience)
    np.testing.assert_array_equal(left[0], seen[1])
    assert events[-1]["best"] is outcome.best is None
    assert outcome.metrics["accuracy"] == pytest.approx(scores[1], nan_ok=True)


def test_less_loss_is_better():
    scores = iter([0.5, 0.4, 0.45, 0.4, 0.6])
    events, _ = run(
        RunPlan(steps=25, validate_every=1, goals={"loss": "min"}),
        1,
        validate=lambda rank: lambda: (4, {"loss": next(scores)}),
    )
    best = [event["best"] for event in events if event["event"] == "validation"]
    assert best == [True, True, False, False, False]


def test_nan_stops_all_and_names_the_worker():
    learners = [small.learner(rank, 2) for rank in range(2)]
    learners[1].feed.batches = Poisoned(learners[1].feed.batches)
    with pytest.raises(Diverged, match="the loss of worker 1 is nan in round 2, iteration 10; no"):
        small.together(
            2, lambda rank, comm: work(learners[rank], Averaging(5), comm, RunPlan(steps=50))
        )


class Poisoned:
    """Batches of which the seventh is not a number."""

    def __init__(self, batches):
        self.batches, self.count = batches, 0

    def next(self):
        batch = self.batches.next()
        self.count += 1
        if self.count == 7:
            batch["x"] = batch["x"] * np.nan
        return batch


def test_a_loss_that_grows_stops_it():
    learner = small.learner(text="base_lr: 40 momentum: 0.99")
    with pytest.raises(Diverged, match=r"the loss is .*, after .* in the first round in round"):
        small.together(1, lambda _, comm: work(learner, Averaging(1), comm, RunPlan(steps=5000)))


def test_settings():
    for wrong, message in (
        ({}, "needs an end"),
        ({"steps": -1}, "steps must be at least 0, not -1"),
        ({"seconds": 0.0}, "more than 0"),
        ({"steps": 1, "keep": 0}, "keep must be at least 1"),
        ({"steps": 1, "validate_every": 0, "patience": 2}, "patience=2 counts validations"),
    ):
        with pytest.raises(SettingError, match=message):
            RunPlan(**wrong)
    assert steps_for(2, 100, 7, 3) == 10
    assert steps_for(1, 96, 4, 2) == 12


def test_strategies_by_name():
    assert make_strategy("averaging", steps=3) == Averaging(3)
    assert make_strategy(Averaging(2)) == Averaging(2)
    with pytest.raises(SettingError, match="no strategy 'avaraging'; did you mean 'averaging'"):
        make_strategy("avaraging")
    with pytest.raises(SettingError, match="no setting 'step'; did you mean 'steps'"):
        make_strategy("averaging", step=3)
    for wrong, message in (
        ({"steps": 0}, "Averaging: steps must be at least 1, not 0"),
        ({"momentum": "kept"}, "keep, average or reset, not 'kept'"),
        ({"warmup": -1}, "warmup must be at least 0"),
        ({"seconds": -1.0}, "seconds must be more than 0"),
    ):
        with pytest.raises(SettingError, match=message):
            make_strategy("averaging", **wrong)
    assert (SlowMo(3).steps, DiLoCo(3).steps, BMUF(3).steps, AllReduce(3).steps) == (3, 3, 3, 3)
    assert Averaging(3).settings() == {"name": "averaging", "warmup": 0, "unequal": 0.0, "steps": 3,
                                       "seconds": None, "momentum": "keep",
                                       "codec": None}  # fmt: skip


@pytest.mark.parametrize("strategy", [Averaging(steps=5), AllReduce()], ids=["whole", "slices"])
def test_clipped_steps_are_counted_and_not_told_one_by_one(strategy, caplog):
    events = []
    text = "clip_gradients: 0.0001"
    learners = [small.learner(rank, 2, text=text) for rank in range(2)]
    plan = RunPlan(steps=10, records=small.RECORDS, batch_size=4)
    with caplog.at_level("INFO", "sparknet.caffe"):
        small.together(
            2,
            lambda rank, comm: work(
                learners[rank], strategy, comm, plan, Hooks(on_event=events.append)
            ),
        )
    rounds = [event for event in events if event["event"] == "round"]
    assert sum(event["clipped"] for event in rounds) == 20
    assert all(sum(one["clipped"] for one in it["workers"]) == it["clipped"] for it in rounds)
    assert "Gradient clipping" not in caplog.text
    events, _ = run(RunPlan(steps=10, records=small.RECORDS, batch_size=4))
    assert [event["clipped"] for event in events if event["event"] == "round"] == [0, 0]
