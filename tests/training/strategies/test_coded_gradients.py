"""AllReduce with a codec, against loops of numpy; and the bytes that it sends."""

import numpy as np
import pytest

from sparknet.comm.codecs import Codec
from sparknet.training.schedule import RunPlan
from sparknet.training.strategies import AllReduce
from sparknet.training.workers.rounds import work
from tests.comm.groups import group, together
from tests.comm.test_codecs import encoded_by_numpy
from tests.training import small

TEXT = "momentum: 0.5 base_lr: 0.05 weight_decay: 0.01"
SIZE, STEPS = 3, 25


class Coded:
    """What numbers are when they come, slice by slice; what is lost is added to the next ones."""

    def __init__(self, codec: Codec, edges: list[int]) -> None:
        self.codec, self.edges = codec, edges
        self.lost = np.zeros(edges[-1], np.float32)

    def __call__(self, values):
        wanted = values.astype(np.float32) + self.lost
        found = np.empty_like(wanted)
        for begin, end in zip(self.edges[:-1], self.edges[1:], strict=True):
            found[begin:end] = encoded_by_numpy(self.codec, wanted[begin:end])[1]
        self.lost = wanted - found
        return found


def by_loops(codec):
    learners = [small.learner(rank, SIZE, TEXT) for rank in range(SIZE)]
    weights = small.weights(learners[0])
    edges = [weights.size * rank // SIZE for rank in range(SIZE + 1)]
    gradients = [Coded(codec, edges) for _ in learners]
    changes, history = Coded(codec, edges), np.zeros_like(weights)
    for _ in range(STEPS):
        came = []
        for learner, coded in zip(learners, gradients, strict=True):
            np.asarray(learner.weights)[...] = weights
            learner.compute_gradient()
            came.append(coded(np.array(learner.gradients)))
        history = 0.5 * history + 0.05 * (np.mean(came, axis=0) + 0.01 * weights)
        weights = weights + changes(-history)
    return weights, history


def trained(codec, kind="local", steps=STEPS):
    learners = [small.learner(rank, SIZE, TEXT) for rank in range(SIZE)]
    with group(kind, SIZE) as comms:
        strategy, plan = AllReduce(steps=5, codec=codec), RunPlan(steps=steps)
        together(comms, lambda comm: work(learners[comm.rank], strategy, comm, plan))
        sent = comms[0].traffic.sent
    for one in learners[1:]:
        np.testing.assert_array_equal(one.weights, learners[0].weights)
    return [small.weights(learners[0]), np.array(learners[0].histories[0])], sent


@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_coded_gradients_and_changes(codec):
    weights, history = by_loops(codec)
    found, _ = trained(codec)
    # Where a quotient lies in the middle between two bytes, the other one may be taken.
    close = {"fp16": 1e-5, "int8": 1e-3}[codec]
    assert np.abs(found[0] - weights).max() < close
    assert np.abs(found[1] - history).max() < close
    exact, _ = trained(None)
    error = np.linalg.norm(found[0] - exact[0]) / np.linalg.norm(exact[0])
    assert 0 < error < {"fp16": 1e-3, "int8": 3e-2}[codec]


def test_the_bits_are_those_of_every_transport():
    local, _ = trained("int8")
    tcp, _ = trained("int8", "tcp")
    np.testing.assert_array_equal(local[0], tcp[0])


def test_half_the_bytes():
    """Of each step; what else is sent is the same."""
    sent = {codec: trained(codec, steps=20)[1] for codec in (None, "fp16")}
    [(begin, end), *_] = [(32 * rank // SIZE, 32 * (rank + 1) // SIZE) for rank in range(SIZE)]
    mine = end - begin
    numbers = (32 - mine) + (SIZE - 1) * mine
    assert sent[None] - sent["fp16"] == 20 * 2 * numbers
