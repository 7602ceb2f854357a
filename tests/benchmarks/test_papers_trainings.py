"""Trainings of the papers' tables: what is kept, which control an arm has, what it says."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers import bigdl, controls, trainings
from benchmarks.papers.controls import Task, equal_bytes, equal_synchronisations, verdict
from benchmarks.papers.sparknet_figures import divided
from benchmarks.papers.trainings import Arm, ArmRun, over_seeds, run, spread
from sparknet.training import AllReduce, Averaging, DynamicAveraging, SlowMo
from sparknet.training.planning import predict
from sparknet.training.planning.trials import Difference, Spread


def test_the_naive_way_is_the_papers_formula():
    found = [round(divided(5, cost), 2) for cost in (0.0, 0.1, 0.5, 0.8, 1.0)]
    assert found == [5.0, 3.33, 1.43, 1.0, 0.83]


def test_trainings_are_kept_by_arm_and_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(trainings, "folder", tmp_path)
    static = Arm(Averaging(10), 2, 40, task="cancer", batch=8, hidden=4)
    losses = over_seeds(static, lambda one: one.loss)
    assert len(set(losses.values())) == trainings.SEEDS
    assert len(list(tmp_path.glob("*.json"))) == trainings.SEEDS
    made: ArmRun = run(static, 1)
    assert (made.iterations, made.synchronisations) == (40, 4)
    size = 4 * (31 * 4 + 5 * 2)
    assert made.sent == pytest.approx(4 * size)  # a mean of two sends the buffer once
    assert run(static, 1) == made
    found = spread(static, lambda one: one.loss)
    assert found.mean == pytest.approx(np.mean(list(losses.values())))
    never = Arm(DynamicAveraging(1e9), 2, 40, task="cancer", batch=8, hidden=4)
    assert run(never, 1).synchronisations <= 1


def test_controls_send_as_many_bytes_or_synchronise_as_often(tmp_path, monkeypatch):
    monkeypatch.setattr(trainings, "folder", tmp_path)
    monkeypatch.setattr(trainings, "SEEDS", 2)
    task = Task("cancer", 60, 8, (0.02,), 16, "loss")
    for strategy in (SlowMo(10), Averaging(10, codec="fp16")):
        sent = spread(task.arm(strategy, 2), lambda one: one.sent).mean
        control = equal_bytes(task, strategy, 2)
        assert spread(control, lambda one: one.sent).mean == pytest.approx(sent, rel=0.03)
        often = equal_synchronisations(task, strategy, 2)
        assert often.strategy == Averaging(10)
    assert equal_bytes(task, SlowMo(10), 2).strategy == Averaging(5)
    assert equal_bytes(task, Averaging(10, codec="fp16"), 2).strategy == Averaging(20)


def test_each_arm_has_the_best_of_the_rates(tmp_path, monkeypatch):
    monkeypatch.setattr(trainings, "folder", tmp_path)
    task = Task("cancer", 30, 8, (1e-5, 0.05), 16, "loss")
    assert task.arm(Averaging(10), 2).rate == 0.05


def test_beyond_the_first_rates_the_next_is_tried_as_long_as_the_best_is_at_an_end(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(trainings, "folder", tmp_path)
    asked: list[float] = []

    def scored(arm: Arm, seed: int) -> ArmRun:
        """The loss is the least at 0.03."""
        asked.append(arm.rate)
        loss = abs(np.log(arm.rate / 0.03))
        return ArmRun([], 1 - loss, loss, 0, 0.0, 0.0, 0.0, [])

    monkeypatch.setattr(controls, "run", scored)
    rates = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    for first in ((1, 3), (5, None), (3, 6), (0, 2)):
        asked.clear()
        task = Task("cancer", 30, 8, rates, 16, "loss", first=first)
        assert task.arm(Averaging(10), 2).rate == 0.03
        assert replace(task, measure="accuracy").arm(Averaging(10), 2).rate == 0.03
        assert len(set(asked)) < len(rates)
    ends = replace(task, rates=rates[:3], first=(0, 1))
    assert ends.arm(Averaging(10), 2).rate == 0.0001


def test_a_difference_that_the_digits_do_not_show_is_none():
    task = Task("cancer", 30, 8, (0.1,), 16, "loss")
    share = replace(task, measure="accuracy")
    far, near = (Difference(Spread(mean, 1e-6, 5), 4, paired=True) for mean in (0.00006, 0.00004))
    assert far.is_significant
    assert near.is_significant
    assert [verdict(task, one) for one in (far, near)] == ["worse", "no difference seen"]
    assert [verdict(share, one) for one in (far, near)] == ["better", "no difference seen"]


def test_an_iteration_of_all_reduce_takes_what_the_strategy_takes():
    found = predict(AllReduce(), bigdl.WIRE, 16, bigdl.nbytes())
    assert bigdl.iteration(16) == pytest.approx(found.seconds, rel=0.01)
    assert bigdl.nbytes() == 53_513_120  # bvlc_googlenet.caffemodel, with both auxiliary heads
