"""Streaming DiLoCo and AllReduce with a codec, over modules: held against loops of K workers as
their papers have them, in plain torch and float64."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

import torch
from torch import nn

from sparknet.comm.codecs import Codec
from sparknet.comm.local_comm import LocalComm
from sparknet.training import AllReduce, DiLoCo, RunPlan
from sparknet.training.schedule import Hooks
from sparknet.training.workers.rounds import Rounds
from tests.comm.groups import together
from tests.torch.modules import LABELS, POINTS, learner_of, perceptron, records
from tests.torch.test_learner import OPTIMIZERS
from tests.training.strategies.test_coded_gradients import Coded

BATCH, STEPS = 12, 24
RATE, MOMENTUM = 0.7, 0.9
Array = np.ndarray[Any, Any]


class Simulated:
    """K workers, each with a module, an optimizer and every K-th record."""

    def __init__(self, size: int, optimizer: str, norm: bool) -> None:
        self.size = size
        self.modules = [perceptron(norm).double() for _ in range(size)]
        self.optimizers = [
            OPTIMIZERS[optimizer]([one for one in module.parameters() if one.requires_grad])
            for module in self.modules
        ]
        self.learned = sum(one.numel() for one in self.parts(self.modules[0])[0])

    def parts(self, module):
        """What learns, and what no gradient changes; a tied parameter once."""
        own = list(module.parameters())
        rest = [one for one in own if not one.requires_grad] + list(module.buffers())
        return [one for one in own if one.requires_grad], rest

    def values(self, module: nn.Module) -> Array:
        learned, rest = self.parts(module)
        return np.concatenate([one.detach().numpy().ravel() for one in (*learned, *rest)]).astype(
            np.float64
        )

    def put(self, module: nn.Module, values: Array) -> None:
        at = 0
        with torch.no_grad():
            for part in self.parts(module):
                for one in part:
                    one.copy_(torch.from_numpy(values[at : at + one.numel()]).view(one.shape))
                    at += one.numel()

    def gradient(self, rank: int, step: int) -> None:
        at = ((step * BATCH + np.arange(BATCH)) * self.size + rank) % len(POINTS)
        self.optimizers[rank].zero_grad()
        made = self.modules[rank](torch.from_numpy(POINTS[at]).double())
        nn.functional.cross_entropy(made, torch.from_numpy(LABELS[at])).backward()

    def average_statistics(self) -> Array:
        held = [self.values(one) for one in self.modules]
        mean = np.mean([one[self.learned :] for one in held], axis=0)
        for module, values in zip(self.modules, held, strict=True):
            self.put(module, np.concatenate([values[: self.learned], mean]))
        return mean


def streamed(size: int, optimizer: str, norm: bool, strategy: DiLoCo) -> tuple[Array, Array]:
    """Algorithm 2 of arXiv 2501.18512, with error feedback: x, and the mean of the workers'."""
    group = Simulated(size, optimizer, norm)
    count, late = strategy.fragments, strategy.overlap
    whole = group.values(group.modules[0])
    moved = np.zeros_like(whole)
    edges = [whole.size * part // count for part in range(count + 1)]
    ends = [strategy.steps * part // count for part in range(count + 1)]
    coders: dict[tuple[int, int], Coded] = {}

    def coded(part: int, who: int, values: Array) -> Array:
        if strategy.codec is None:
            return values
        cut = [values.size * rank // size for rank in range(size + 1)]
        return coders.setdefault((part, who), Coded(strategy.codec, cut))(values)

    def mean_of(part: int) -> Array:
        span = slice(edges[part], edges[part + 1])
        sent = []
        for who, module in enumerate(group.modules):
            change = group.values(module)[span] - whole[span]
            change[max(group.learned - edges[part], 0) :] = 0
            sent.append(coded(part, who, change))
        return coded(part, size, np.mean(sent, axis=0))

    step = number = 0
    while step < STEPS:
        part = number % count
        span = slice(edges[part], edges[part + 1])
        mean = None
        for one in range(ends[part + 1] - ends[part]):
            if late and one == ends[part + 1] - ends[part] - late:
                mean = mean_of(part)
            for rank in range(size):
                group.gradient(rank, step)
                group.optimizers[rank].step()
            step += 1
        gradient = -(mean_of(part) if mean is None else mean)
        statistics = group.average_statistics()
        moved[span] = MOMENTUM * moved[span] + gradient
        whole[span] -= RATE * (gradient + MOMENTUM * moved[span])
        whole[group.learned :] = statistics
        alpha = strategy.mixing if late else 0.0
        for module in group.modules:
            own = group.values(module)
            own[span] = alpha * own[span] + (1 - alpha) * whole[span]
            own[group.learned :] = statistics
            group.put(module, own)
        number += 1
    return whole, np.mean([group.values(one) for one in group.modules], axis=0)


def trained(size, optimizer, norm, strategy):
    """The state of the strategy, and the weights of all workers at the end."""
    data, comms = records(), LocalComm.group(size)
    module = perceptron(norm)
    members = [
        learner_of(module, OPTIMIZERS[optimizer], data, BATCH, rank, size) for rank in range(size)
    ]

    def work(comm):
        rounds = Rounds(members[comm.rank], strategy, comm, RunPlan(steps=STEPS), Hooks())
        rounds.start()
        rounds.go_on()
        return rounds.state

    states = together(comms, work)
    for one in members[1:]:
        np.testing.assert_array_equal(one.weights.numpy(), members[0].weights.numpy())
    return states[0], members[0].weights.numpy().copy()


@pytest.mark.parametrize("codec", [None, "fp16", "int8"])
@pytest.mark.parametrize(
    ("optimizer", "norm", "fragments", "overlap"),
    [
        ("momentum", False, 1, 2),
        ("adam", False, 3, 0),
        ("momentum", True, 2, 3),
        ("nesterov", True, 4, 2),
    ],
)
def test_streaming_diloco(optimizer, norm, fragments, overlap, codec):
    strategy = DiLoCo(8, RATE, MOMENTUM, fragments, overlap, mixing=0.3, codec=codec)
    state, weights = trained(2, optimizer, norm, strategy)
    whole, mean = streamed(2, optimizer, norm, strategy)
    # Where a quotient lies in the middle between two bytes, the other one may be taken.
    close = {None: 3e-6, "fp16": 1e-4, "int8": 2e-3}[codec]
    np.testing.assert_allclose(np.array(state.center), whole, rtol=0, atol=close)
    np.testing.assert_allclose(weights, mean, rtol=0, atol=close)
    plain, _ = streamed(2, optimizer, norm, DiLoCo(8, RATE, MOMENTUM))
    assert np.abs(plain - whole).max() > 10 * close


def reduced(size: int, optimizer: str, norm: bool, codec: Codec | None) -> Array:
    """A mean of coded gradients for a step of one optimizer, whose changes are coded as well."""
    group = Simulated(size, optimizer, norm)
    count = group.values(group.modules[0]).size
    edges = [count * rank // size for rank in range(size + 1)]
    gradients = [Coded(codec, edges) if codec else None for _ in range(size)]
    changes = Coded(codec, edges) if codec else None
    first = group.modules[0]
    for step in range(STEPS):
        came = []
        for rank, module in enumerate(group.modules):
            group.gradient(rank, step)
            learned, rest = group.parts(module)
            found = np.zeros(count)
            found[: group.learned] = np.concatenate([one.grad.numpy().ravel() for one in learned])
            coded = gradients[rank]
            came.append(found if coded is None else coded(found))
        before, mean, at = group.values(first), np.mean(came, axis=0), 0
        for one in group.parts(first)[0]:
            one.grad.copy_(torch.from_numpy(mean[at : at + one.numel()]).view(one.shape))
            at += one.numel()
        group.optimizers[0].step()
        change = group.values(first) - before
        change[group.learned :] = 0
        after = before + (change if changes is None else changes(change))
        for module in group.modules:
            rest = group.values(module)[group.learned :]
            group.put(module, np.concatenate([after[: group.learned], rest]))
    group.average_statistics()
    return group.values(first)


# A bias before a BatchNorm has no gradient but rounding errors, which Adam makes steps of.
@pytest.mark.parametrize(("optimizer", "norm"), [("momentum", True), ("adam", False)])
@pytest.mark.parametrize("codec", ["fp16", "int8"])
def test_allreduce_with_a_codec(optimizer, norm, codec):
    _, weights = trained(3, optimizer, norm, AllReduce(steps=STEPS, codec=codec))
    found = reduced(3, optimizer, norm, codec)
    # Were gradients not coded, eight bits would be 1e-3 and 3e-3 from here.
    close = 1e-4 if codec == "fp16" else {"momentum": 5e-4, "adam": 1.5e-3}[optimizer]
    np.testing.assert_allclose(weights, found, rtol=0, atol=close)
    assert 0 < np.abs(found - reduced(3, optimizer, norm, None)).max() < 30 * close
