"""ModuleTrainee: a module of PyTorch in a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sparknet.comm.collectives import Comm
from sparknet.loaders.batches import Batches, Transforms, one_pass
from sparknet.net.scores import Scores
from sparknet.training.learner import Learner
from sparknet.training.modules.calling import ModuleLoss, computing_in, tensor
from sparknet.training.modules.flat_module import FlatModule
from sparknet.training.modules.learner import ModuleFeed, TorchLearner
from sparknet.training.modules.portable import PortableModule
from sparknet.training.plan import Validate
from sparknet.training.seat import Seat
from sparknet.training.worker_records import WorkerRecords, share_of
from sparknet.weights import Layout

_PRIME = 7919


class ModuleTrainee:
    """A module with its loss and optimizer."""

    transforms: Transforms = {}  # noqa: RUF012 - none

    def __init__(self, sent: PortableModule, seed: int, seat: Seat) -> None:
        import torch

        self._sent, self.batch_size, self.iter_size = sent, sent.batch_size, sent.accumulate
        self._parts = sent.unpacked()
        self.module = self._parts.module
        torch.manual_seed(seed + _PRIME * seat.rank)
        self.flat = FlatModule(self.module)
        self._loss = ModuleLoss(self._parts.loss)

    chance: float | None = None

    @property
    def layout(self) -> Layout:
        return self.flat.layout

    def learner(self, batches: Batches) -> Learner:
        self._feed = ModuleFeed(batches, self._sent)
        train_mode(self.module)
        return TorchLearner(self.flat, self._parts, self._feed, self._sent)

    def validation(self, part: WorkerRecords, comm: Comm, metrics: Sequence[str]) -> Validate:
        import torch

        mine = share_of(part, part.validation, comm)

        def measure() -> tuple[int, dict[str, float]]:
            if mine is None:
                return 0, {}
            sums: dict[str, float] = {}
            scores = Scores(metrics)
            with torch.no_grad(), evaluating(self.module):
                for batch in one_pass(mine, self.batch_size):
                    count = len(next(iter(batch.values())))
                    for name, value in self._measured(batch, scores if metrics else None).items():
                        sums[name] = sums.get(name, 0.0) + value * count
            means = {name: value / len(mine) for name, value in sums.items()}
            return len(mine), means | (scores.parts() if metrics else {})

        return measure

    def _measured(self, batch: Any, scores: Scores | None) -> dict[str, float]:
        sent = self._sent
        inputs = {name: tensor(batch[one], True, sent.device) for name, one in sent.inputs.items()}
        targets = [tensor(batch[name], False, sent.device) for name in sent.targets]
        with computing_in(sent.precision):
            outputs = self.module(**inputs)
            weights = None if sent.weights is None else tensor(batch[sent.weights], True)
            found = {"loss": float(self._loss(outputs, targets, weights))}
        made, real, accuracy = self._loss.judged(outputs, targets)
        if accuracy is not None:
            found["accuracy"] = accuracy
        if scores is not None and made is not None:
            count = len(next(iter(batch.values())))
            scores.add(made.cpu().numpy(), real.cpu().numpy(), count)
        return found

    def ranges(self) -> dict[str, tuple[float, float]]:
        given = self._feed.inputs.items()
        return {name: (float(one.min()), float(one.max())) for name, one in given if one.numel()}


def train_mode(module: Any) -> None:
    """Set the mode of training.  A part with a `train` of its own is asked, which may keep some of
    its parts from it; other parts keep the mode that they have."""
    import torch

    if not module.training or getattr(module.train, "__func__", None) is not torch.nn.Module.train:
        module.train()
        return
    for part in module.children():
        if part.training:
            train_mode(part)


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """The module in its mode of evaluation; afterwards every part has its own again."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
