"""Streaming DiLoCo against a simulation of its paper, step by step; and what its means cost."""

import threading
from functools import partial
from typing import Any

import numpy as np
import pytest

from sparknet.errors import CommError, SettingError
from sparknet.native import NDArray
from sparknet.net.learner import SolverLearner
from sparknet.training.planning.prediction import predict
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import DiLoCo
from sparknet.training.virtual.cluster import Cluster
from sparknet.training.workers.rounds import Rounds
from tests.comm.groups import group, together
from tests.training import small

Array = np.ndarray[Any, Any]

TEXT = 'weight_decay: 0.01 lr_policy: "step" stepsize: 8 gamma: 0.5'
RATE, MOMENTUM = 0.7, 0.9


def learners(size: int, middle: str = "") -> list[SolverLearner]:
    return [small.learner(rank, size, TEXT, middle=middle) for rank in range(size)]


def of_paper(size, total, strategy, codec=lambda part, worker, sent: sent):
    """Algorithm 2 of arXiv 2501.18512: the global weights, and each worker's own, after the steps.

    Part p is sent where t - t_p is a multiple of H, and comes ``overlap`` steps later.
    """
    group, every, late = learners(size), strategy.steps, strategy.overlap
    whole = small.weights(group[0]).astype(np.float64)
    edges = [whole.size * part // strategy.fragments for part in range(strategy.fragments + 1)]
    comes = [every * (part + 1) // strategy.fragments for part in range(strategy.fragments)]
    moved, on_the_way = np.zeros_like(whole), dict[int, Array]()

    def send(step: int, part: int, begin: int, end: int) -> None:
        if (step - comes[part] + late) % every == 0:
            sent = [whole[begin:end] - small.weights(one)[begin:end] for one in group]
            coded = [codec(part, number, one) for number, one in enumerate(sent)]
            on_the_way[part] = np.mean(coded, axis=0)

    def receive(step: int, part: int, begin: int, end: int) -> None:
        if step and (step - comes[part]) % every == 0:
            gradient = on_the_way.pop(part)
            moved[begin:end] = MOMENTUM * moved[begin:end] + gradient
            whole[begin:end] -= RATE * (gradient + MOMENTUM * moved[begin:end])
            alpha = strategy.mixing if late else 0.0
            for learner in group:
                own = np.asarray(learner.weights)[begin:end]
                own[...] = alpha * own + (1 - alpha) * whole[begin:end]

    for step in range(total + 1):
        for learner in group if step else ():
            learner.step(1)
        for does in (receive, send) if late else (send, receive):
            for part in range(strategy.fragments):
                does(step, part, edges[part], edges[part + 1])
    return whole, [small.weights(one).astype(np.float64) for one in group]


def trained(kind, size, total, strategy, middle=""):
    """x after the last round, the weights at the end, and the events of rounds."""
    members, events = learners(size, middle), list[dict[str, Any]]()
    plan = RunPlan(steps=total, records=small.RECORDS, batch_size=small.BATCH)

    def work(rank, comm):
        hooks = Hooks(on_event=events.append)
        rounds = Rounds(members[rank], strategy, comm, plan, hooks)
        rounds.start()
        rounds.go_on()
        return np.array(rounds.state.center)

    with group(kind, size) as comms:
        centers = small.together(size, work, comms)
    for center, member in zip(centers, members, strict=True):
        np.testing.assert_array_equal(center, centers[0])
        np.testing.assert_array_equal(member.weights, members[0].weights)
    return centers[0], small.weights(members[0]), [one for one in events if one["event"] == "round"]


@pytest.mark.parametrize(
    ("kind", "fragments", "overlap"),
    [
        *(("local", *both) for both in ((1, 0), (3, 0), (1, 3), (1, 8), (3, 2), (4, 2), (5, 1))),
        ("tcp", 3, 2),
    ],
)
def test_the_papers_algorithm(kind, fragments, overlap):
    strategy = DiLoCo(8, RATE, MOMENTUM, fragments, overlap, mixing=0.3)
    center, weights, _ = trained(kind, 3, 32, strategy)
    whole, own = of_paper(3, 32, strategy)
    assert np.abs(center - whole).max() < 1e-6
    assert np.abs(weights - np.mean(own, axis=0)).max() < 1e-6
    plain, *_ = trained("local", 3, 32, DiLoCo(8))
    assert (fragments, overlap) == (1, 0) or np.abs(plain - whole).max() > 1e-3


def test_what_a_codec_loses_comes_with_the_next_message_of_its_part():
    """Each part has errors of its own, although all are of one size."""
    strategy = DiLoCo(8, RATE, MOMENTUM, 2, 3, codec="fp16")
    assert learners(1)[0].weights.size % 2 == 0
    lost = {}

    def half(part: int, worker: int, sent: Array) -> Array:
        wanted = sent.astype(np.float32) + lost.get((part, worker), np.float32(0))
        found = wanted.astype(np.float16).astype(np.float32)
        lost[part, worker] = wanted - found
        return found

    center, *_ = trained("local", 3, 32, strategy)
    whole, _ = of_paper(3, 32, strategy, half)
    assert np.abs(center - whole).max() < 2e-4  # the mean is coded as well
    exact, _ = of_paper(3, 32, strategy)
    assert np.abs(center - exact).max() < 2e-3


@pytest.mark.parametrize("momentum", ["keep", "average", "reset"])
def test_one_part_without_overlap_is_diloco(monkeypatch, momentum):
    strategy = DiLoCo(4, momentum=momentum)
    expected, weights, _ = trained("local", 3, 22, strategy, small.BATCH_NORM)
    np.testing.assert_array_equal(weights, expected)
    monkeypatch.setattr(DiLoCo, "streams", True)
    center, *_ = trained("local", 3, 22, strategy, small.BATCH_NORM)
    np.testing.assert_array_equal(center.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("codec", [None, "fp16"])
def test_a_message_is_shorter_by_the_number_of_parts(codec):
    plain = trained("tcp", 2, 24, DiLoCo(12, codec=codec))[2]
    parts = trained("tcp", 2, 24, DiLoCo(12, fragments=4, overlap=2, codec=codec))[2]
    small_values = 700  # the reports of a round
    whole = plain[1]["bytes_sent"]
    of_parts = [one["bytes_sent"] for one in parts]
    assert len(of_parts) == 8
    buffers = 2 * 32 * {None: 4, "fp16": 2}[codec]
    assert whole - small_values < buffers < whole
    assert max(of_parts[1:]) - min(of_parts[1:]) < 100
    assert whole - of_parts[1] == pytest.approx(buffers * 3 / 4, abs=60)


def test_the_whole_mean_is_hidden_where_it_takes_no_longer_than_the_steps():
    """A mean of 64 MB takes 2 s, of a quarter 0.5 s; a step takes 0.1 s."""
    cluster = Cluster(step=0.1, bandwidth=32e6, latency=0.0)
    taken = partial(predict, cluster=cluster, workers=2, nbytes=64 << 20)
    second = (64 << 20) / 64e6
    waiting = {
        one: 20 * (taken(one).seconds - 0.1)
        for one in (
            DiLoCo(20),
            DiLoCo(20, overlap=10),
            DiLoCo(20, overlap=20),
            DiLoCo(20, fragments=4),
            DiLoCo(20, fragments=4, overlap=2),
            DiLoCo(20, fragments=4, overlap=5),
        )
    }
    mean = 2 * second
    expected = [mean, mean - 1, mean - 2, mean, mean - 4 * 0.2, mean - 4 * 0.5]
    assert list(waiting.values()) == pytest.approx([max(0.0, one) for one in expected], abs=1e-3)
    assert taken(DiLoCo(20, fragments=4)).bytes == pytest.approx(taken(DiLoCo(20)).bytes)


def test_a_worker_goes_on_while_a_mean_is_taken():
    """The second one begins the mean when the first one has gone on."""
    goes_on = threading.Event()

    def work(comm):
        buffer = NDArray.full((4,), 1.0 + comm.rank)
        if comm.rank and not goes_on.wait(20):
            raise AssertionError("the first one waits")
        ends = comm.begin_mean(buffer)
        goes_on.set()
        ends()
        return np.array(buffer), comm.traffic.seconds

    for kind in ("local", "tcp"):
        goes_on.clear()
        with group(kind, 2) as comms:
            for mean, _ in together(comms, work):
                np.testing.assert_array_equal(mean, np.full(4, 1.5))


def test_a_loss_leaves_a_codecs_errors_as_they_were():
    def work(comm):
        first = NDArray(np.linspace(0, 1 + comm.rank, 600, dtype=np.float32))
        comm.begin_mean(first.copy(), "int8")()
        own, mean = comm.feedback("int8", 600)
        before = np.array(own), np.array(mean)
        if comm.rank == 2:
            comm.close()
            return True
        ends = comm.begin_mean(first, "int8")
        with pytest.raises(CommError):
            ends()
        assert before[0].any()
        return np.array_equal(own, before[0]) and np.array_equal(mean, before[1])

    for kind in ("local", "tcp"):
        with group(kind, 3) as comms:
            assert together(comms, work) == [True] * 3


def test_a_worker_that_fails_beside_a_mean_waits_for_nobody():
    left = threading.Event()

    def work(comm):
        buffer = NDArray.full((1 << 16,), 1.0)
        if comm.rank:
            assert left.wait(20)
            with pytest.raises(CommError):
                comm.begin_mean(buffer)()
            return "told"
        comm.begin_mean(buffer)
        comm.close()
        left.set()
        return "left"

    for kind in ("local", "tcp"):
        left.clear()
        with group(kind, 2) as comms:
            assert together(comms, work) == ["left", "told"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"fragments": 0}, "DiLoCo: fragments must be in 1 … steps, 6, not 0"),
        ({"fragments": 7}, "DiLoCo: fragments must be in 1 … steps, 6, not 7"),
        ({"fragments": 2, "overlap": 4}, "overlap must be in 0 … steps / fragments, 3, not 4"),
        ({"overlap": -1}, "overlap must be in 0 … steps / fragments, 6, not -1"),
        ({"overlap": 1, "mixing": 1.0}, "mixing must be in 0 … 1, not 1.0"),
        ({"fragments": "2"}, "fragments must be a number, not '2'"),
    ],
)
def test_settings_that_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        DiLoCo(6, **settings)


def test_more_parts_than_weights_are_refused():
    with pytest.raises(SettingError, match="fragments=50 is more than the net's 32 weights"):
        trained("local", 2, 4, DiLoCo(50, fragments=50))
