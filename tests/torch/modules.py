"""Modules that the tests train, and the loop that anybody would write in torch for them."""

import copy

import numpy as np
import torch
from torch import nn

from sparknet.loaders.batches import Batches
from sparknet.loaders.order import Order
from sparknet.loaders.records import ArrayRecords
from sparknet.torch.modules.flat_module import FlatModule, ModuleParts, PortableModule
from sparknet.torch.modules.learner import ModuleFeed, TorchLearner

POINTS = np.random.default_rng(0).normal(size=(240, 4)).astype(np.float32)
LABELS = (POINTS[:, 0] > POINTS[:, 1]).astype(np.int64)


class Perceptron(nn.Module):
    """With a tied weight, a frozen one, and a batch norm if wanted."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm: nn.Module = nn.BatchNorm1d(6) if norm else nn.Identity()
        self.second = nn.Linear(6, 6)
        self.third = nn.Linear(6, 6)
        self.third.weight = self.second.weight
        self.frozen = nn.Linear(6, 6)
        self.frozen.requires_grad_(False)
        self.last = nn.Linear(6, 2)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        hidden = self.third(torch.tanh(self.second(torch.tanh(self.norm(self.first(points))))))
        return self.last(self.frozen(hidden))


def perceptron(norm: bool = False, seed: int = 0) -> Perceptron:
    torch.manual_seed(seed)
    return Perceptron(norm)


def records(count: int = len(POINTS)) -> ArrayRecords:
    return ArrayRecords(points=POINTS[:count], label=LABELS[:count])


def learner_of(
    module,
    optimizer,
    data,
    batch_size=12,
    rank=0,
    size=1,
    buffers="average",
    clip=None,
    schedule=None,
    loss=None,
):
    """A worker's learner, over batches in the records' own order."""
    own, optimizer = copy.deepcopy((module, optimizer))
    parts = ModuleParts(own, loss or nn.CrossEntropyLoss(), optimizer, schedule)
    sent = PortableModule(b"", {"points": "points"}, ("label",), batch_size, buffers, clip, "cpu")
    batches = Batches(data, batch_size, Order(len(data), 0, False, rank, size))
    return TorchLearner(FlatModule(own), parts, ModuleFeed(batches, sent), sent)


def plain(module, optimizer, batches, clip=None, schedule=None):
    """Train a module in place as any script does; the losses."""
    made = optimizer([one for one in module.parameters() if one.requires_grad])
    rates = schedule(made) if schedule else None
    loss, losses = nn.CrossEntropyLoss(), []
    for points, labels in batches:
        made.zero_grad()
        value = loss(module(points), labels)
        value.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        made.step()
        if rates is not None:
            rates.step()
        losses.append(float(value.detach()))
    return losses


def batches(steps, size):
    """The records in their order, again and again."""
    for step in range(steps):
        at = np.arange(step * size, (step + 1) * size) % len(POINTS)
        yield torch.from_numpy(POINTS[at]), torch.from_numpy(LABELS[at])


def values(module):
    return {name: one.numpy().copy() for name, one in module.state_dict().items()}


def weights(learners):
    return [one.weights.numpy().copy() for one in learners]
