"""TorchLearner: a learner over a module of PyTorch."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparknet.errors import SettingError
from sparknet.loaders.batches import Batches
from sparknet.native import NDArray
from sparknet.net.learner import Cursor, FedLearner
from sparknet.proto import caffe_pb2
from sparknet.torch.modules.calling import ModuleLoss, computing_in, tensor
from sparknet.torch.modules.flat_module import FlatModule, ModuleParts, PortableModule, tensor_of
from sparknet.torch.modules.updater import (
    FlatOptimizer,
    ScheduledRates,
    Updater,
    is_elementwise,
    made_optimizer,
)
from sparknet.weights import Span


class ModuleFeed:
    """Batches that become a module's arguments and targets."""

    def __init__(self, batches: Batches, sent: PortableModule) -> None:
        self.batches, self._sent = batches, sent
        self.inputs: dict[str, Any] = {}
        self.targets: list[Any] = []
        self.weights: Any = None

    def load(self) -> int:
        return self.put(self.batches.next())

    def put(self, batch: Mapping[str, Any]) -> int:
        """Take a batch; returns its number of records, which is `count` from then on."""
        parts = self._sent
        self.inputs = {
            name: tensor(batch[column], True, parts.device) for name, column in parts.inputs.items()
        }
        self.targets = [tensor(batch[name], False, parts.device) for name in parts.targets]
        if parts.weights is not None:
            self.weights = tensor(batch[parts.weights], True, parts.device)
        self.count = len(next(iter(batch.values())))
        return self.count

    @property
    def cursor(self) -> Cursor:
        return self.batches.cursor

    def seek(self, cursor: Mapping[str, int]) -> None:
        self.batches.seek(cursor)


class TorchLearner(FedLearner):
    """A `Learner` whose module's parameters and gradients are views of its flat buffers."""

    feed: ModuleFeed

    def __init__(
        self, flat: FlatModule, parts: ModuleParts, feed: ModuleFeed, sent: PortableModule
    ) -> None:
        super().__init__(feed, caffe_pb2.SolverParameter())
        _keep_freed_memory()
        self.flat, self.statistics = flat, flat.statistics
        self.clipped, self._iteration = 0, 0
        self._loss, self._clip = ModuleLoss(parts.loss), sent.clip_gradients
        self._precision, self._accumulate = sent.precision, sent.accumulate
        self._reached: set[int] = set()
        """Where the parameters lie that this iteration's loss depends on."""
        self._gradients = NDArray.zeros((flat.weights.size,))
        self._all_gradients = tensor_of(self._gradients)
        for (begin, end), one in flat.parameters.values():
            if one.requires_grad:
                view = self._all_gradients[begin:end].view(one.shape)
                if one.dtype == view.dtype:
                    one.grad = view
                one.register_post_accumulate_grad_hook(partial(self._reach, begin, view))
        self._optimizer = made_optimizer(parts.optimizer, flat.module)
        self._rates = ScheduledRates(self._optimizer, parts.lr_schedule)
        self._state = FlatOptimizer(self._optimizer, flat, self._gradients)
        self._updater = Updater(self._state)
        self._own = self._buffers().clone() if sent.buffers == "keep" else None

    # -- what it is ----------------------------------------------------------------------

    @property
    def weights(self) -> NDArray:
        return self.flat.weights

    @property
    def gradients(self) -> NDArray:
        return self._gradients

    @property
    def histories(self) -> Sequence[NDArray]:
        return self._state.histories

    @property
    def momentum(self) -> float:
        """That of SGD, if all groups of parameters have the same one."""
        if type(self._optimizer).__name__ != "SGD":
            return 0.0
        momenta = {float(group["momentum"]) for group in self._rates.at(self._iteration)}
        return momenta.pop() if len(momenta) == 1 else 0.0

    @property
    def iter(self) -> int:
        return self._iteration

    @property
    def rate(self) -> float:
        return float(self._rates.at(self._iteration)[0]["lr"])

    @property
    def last_rate(self) -> float:  # type: ignore[override]
        """The same: no history of torch's contains the rate, so none changes where it drops."""
        return self.rate

    # -- training ------------------------------------------------------------------------

    def _loss_and_gradient(self) -> float:
        if self._own is not None:
            self._buffers().copy_(self._own)
        self.flat.push()
        self._all_gradients.zero_()
        self._reached.clear()
        total, count = 0.0, self._accumulate
        for _ in range(count):
            self._load()
            with computing_in(self._precision):
                outputs = self.flat.module(**self.feed.inputs)
                loss = self._loss(outputs, self.feed.targets, self.feed.weights)
            (loss if count == 1 else loss / count).backward()
            total += float(loss.detach())
        self.flat.pull()
        if self._own is not None:
            self._own.copy_(self._buffers())
        return total / count

    def _reach(self, place: int, view: Any, parameter: Any) -> None:
        """Note that the loss depends on a parameter; a gradient of another type is added here."""
        self._reached.add(place)
        if parameter.dtype != view.dtype:
            view.add_(parameter.grad)
            parameter.grad = None

    def _update(self) -> None:
        self._move(self._updater, 0, self.weights.size, self._gradients.norm2)

    def apply_update(self, begin: int, end: int, norm: Callable[[], float]) -> None:
        if (begin, end) == (0, self.weights.size):
            self._move(self._updater_of(None), begin, end, norm)
            return
        if not is_elementwise(self._optimizer):
            kind = type(self._optimizer).__name__
            raise SettingError(
                f"optimizer {kind} cannot update a part of the weights, as AllReduce asks of each "
                "worker: take Adam, SGD or another strategy"
            )
        self._move(self._updater_of((begin, end)), begin, end, norm)

    def _updater_of(self, span: Span | None) -> Updater:
        if self._updater.span != span:
            before = self._updater.rest()
            self._updater = Updater(self._state, span)
            self._updater.restore(before)
        return self._updater

    def _move(self, updater: Updater, begin: int, end: int, norm: Callable[[], float]) -> None:
        if self._clip is not None:
            length = norm()
            if length > self._clip:
                self._gradients[begin:end].scale(self._clip / (length + 1e-6))
                self.clipped += 1
        updater.step(self._iteration, self._rates.at(self._iteration), self._reached)
        self._iteration += 1

    def settle(self) -> None:
        self.flat.push()

    def _buffers(self) -> Any:
        """Return the module's buffers, in the flat weights."""
        begin, end = self.statistics[0] if self.statistics else (0, 0)
        return self.flat.tensor[begin:end]

    # -- snapshots -------------------------------------------------------------------------

    def seek(self, iteration: int) -> None:
        self._iteration = iteration

    def state(self) -> dict[str, Any]:
        import torch

        own = {} if self._own is None else {"buffers": _text(self._own)}
        return {
            "iteration": self._iteration,
            "clipped": self.clipped,
            "cursor": dict(self.feed.cursor),
            "random": _text(torch.get_rng_state()),
            "optimizer": self._updater.rest(),
            **own,
        }

    def restore(self, state: Mapping[str, Any]) -> str:
        import torch

        self._iteration, self.clipped = state["iteration"], state["clipped"]
        self.feed.seek(state["cursor"])
        random = np.frombuffer(base64.b64decode(state["random"]), np.uint8).copy()
        torch.set_rng_state(torch.from_numpy(random))
        self._updater.restore(state["optimizer"])
        if self._own is not None and "buffers" in state:
            own = np.frombuffer(base64.b64decode(state["buffers"]), np.float32).copy()
            self._own.copy_(torch.from_numpy(own))
        return ""


def _keep_freed_memory() -> None:
    """Let malloc keep what torch frees in a step: to get it anew takes a quarter of the step.

    glibc keeps twice the largest block that was ever freed, of at most 32 MiB."""
    np.empty((32 << 20) - (1 << 16), np.uint8)


def _text(values: Any) -> str:
    """Return a tensor's bytes, for JSON."""
    return base64.b64encode(values.detach().cpu().numpy().tobytes()).decode()
