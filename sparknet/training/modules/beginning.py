"""ModuleBeginning: a run of a module of PyTorch before it has workers."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Mapping
from hashlib import blake2b
from typing import Any

from sparknet.errors import SettingError, extra
from sparknet.native import NDArray
from sparknet.summary import History
from sparknet.training.beginning import Beginning
from sparknet.training.modules.calling import ModuleLoss, tensor
from sparknet.training.modules.flat_module import FlatModule
from sparknet.training.modules.keywords import ModuleKeywords
from sparknet.training.modules.naming import check_parameters
from sparknet.training.modules.portable import ModuleParts, PortableModule, packed
from sparknet.training.modules.rates import ScheduledRates, settings_of_groups
from sparknet.training.modules.trained import NO_NET, TrainedModule
from sparknet.training.modules.trainee import evaluating
from sparknet.training.modules.updater import FlatOptimizer, is_elementwise, made_optimizer
from sparknet.training.runs import Runs, find
from sparknet.training.snapshot import model
from sparknet.training.strategies import AllReduce
from sparknet.training.training_settings import RunSettings, StrPath
from sparknet.training.worker import Outcome
from sparknet.weights import WeightCollection

_BATCH = 32


def parts_of(how: ModuleKeywords) -> ModuleParts:
    """A copy of the module with its loss and optimizer; nothing of the user's is changed."""
    with extra("torch", "torch", "a module of PyTorch"):
        import torch
    module, optimizer = how.module, how.optimizer
    if isinstance(module, torch.nn.Module):
        module, optimizer = copy.deepcopy((module, optimizer))
    elif callable(module):
        module = module()
    if not isinstance(module, torch.nn.Module):
        raise SettingError(
            "module must be a module of PyTorch, or a function that makes one, not "
            f"{type(module).__name__}"
        )
    check_parameters(module)
    made_optimizer(optimizer, module)  # may be refused
    return ModuleParts(module, how.loss, optimizer, how.lr_schedule)


class ModuleBeginning(Beginning):
    """That of a module with its loss and optimizer."""

    def __init__(
        self,
        given: RunSettings,
        runs: Runs | None,
        resume: bool,
        validates: bool,
        how: ModuleKeywords,
        parts: ModuleParts,
        inputs: dict[str, str],
        first: Mapping[str, Any],
    ) -> None:
        """``inputs`` are the columns of the module's arguments, ``first`` a few records."""
        self._how, self._parts, self._inputs = how, parts, inputs
        self._order_seed = given.seed
        self._loss = ModuleLoss(parts.loss)
        self._judges = try_out(parts.module, self._loss, inputs, how.targets, first)
        self.flat = FlatModule(parts.module)
        self.batch_size = how.batch_size or _BATCH
        super().__init__(given, runs, resume, validates)
        optimizer = made_optimizer(parts.optimizer, parts.module)
        splits = isinstance(self.strategy, AllReduce) and given.workers > 1
        if splits and not is_elementwise(optimizer):
            kind = type(optimizer).__name__
            raise SettingError(
                f"optimizer {kind} cannot update a part of the weights, as AllReduce asks of each "
                "worker: take Adam, SGD or another strategy"
            )

    @property
    def copies(self) -> int:
        """How many buffers as long as the weights a worker has, at least."""
        return 3 + self._histories

    def trained(self, outcome: Outcome, weights: NDArray, history: History) -> TrainedModule:
        """The result of a run."""
        self.flat.weights.copy_from(weights)
        self.flat.push()
        made = WeightCollection(self.flat.layout, weights)
        return TrainedModule(made, history, NO_NET, outcome, module=self.flat.module)

    def _make(self, seed: int | None) -> None:
        self.name = type(self._parts.module).__name__

    def _seed(self, resumed: int | None) -> int:
        return self._order_seed if resumed is None else resumed

    def _identity(self) -> dict[str, Any]:
        optimizer = made_optimizer(self._parts.optimizer, self._parts.module)
        ScheduledRates(optimizer, self._parts.lr_schedule)  # may be refused
        flat = FlatOptimizer(optimizer, self.flat, NDArray.zeros((self.flat.weights.size,)))
        self._histories = len(flat.histories)
        return {
            "net": _digest_of(self.flat),
            "solver": {
                "optimizer": type(optimizer).__name__,
                "groups": [
                    {name: _plain(value) for name, value in group.items()}
                    for group in settings_of_groups(optimizer)
                ],
                "clip_gradients": self._how.clip_gradients,
                "buffers": self._how.buffers,
            },
        }

    def _known_metrics(self) -> Collection[str]:
        return ("loss", "accuracy") if self._judges else ("loss",)

    def weights(self) -> WeightCollection:
        return WeightCollection(self.flat.layout, self.flat.weights)

    def _sent(self) -> PortableModule:
        return PortableModule(
            data=packed(self._parts),
            inputs=self._inputs,
            targets=self._how.targets,
            batch_size=self.batch_size,
            buffers=self._how.buffers,
            clip_gradients=self._how.clip_gradients,
            device="cpu",
        )


def set_weights(
    flat: FlatModule, given: StrPath | WeightCollection | None, runs_at: Callable[[str], Runs]
) -> None:
    """Begin with these weights: a collection, or those of the newest snapshot at a path."""
    if given is None:
        return
    if isinstance(given, (str, os.PathLike)):
        given = model(*find(runs_at, os.fspath(given)))
    if not isinstance(given, WeightCollection):
        raise SettingError(
            "weights of a module are a WeightCollection or a path of snapshots, not "
            f"{type(given).__name__}: load a state_dict into the module"
        )
    flat.layout.check(given.layout, "the module's initial weights")
    for name, (values,) in WeightCollection(flat.layout, flat.weights).items():
        values.copy_from(given[name][0])
    flat.push()


def try_out(
    module: Any,
    loss: ModuleLoss,
    inputs: Mapping[str, str],
    targets: tuple[str, ...],
    first: Mapping[str, Any],
) -> bool:
    """Refuse a module or a loss that fails on a few records; returns whether there is an accuracy.

    This makes the parameters of modules that wait for their first input.
    """
    import torch

    kind = type(module).__name__
    given = {name: tensor(first[column], True) for name, column in inputs.items()}
    real = [tensor(first[name], False) for name in targets]
    shapes = ", ".join(f"'{name}' {tuple(one.shape)}" for name, one in given.items())
    with torch.random.fork_rng(devices=[]), evaluating(module):
        try:
            outputs = module(**given)
        except Exception as error:
            raise SettingError(
                f"module '{kind}' fails on the first records, {shapes}: {_line(error)}"
            ) from error
        try:
            made = loss(outputs, real)
            accuracy = loss.judged(outputs, real)[2]
        except SettingError:
            raise
        except Exception as error:
            raise SettingError(
                f"the loss fails on the first records of module '{kind}': {_line(error)}"
            ) from error
        if not made.requires_grad:
            raise SettingError(f"the loss of module '{kind}' does not depend on its parameters")
    return accuracy is not None


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _plain(value: Any) -> Any:
    """A setting of an optimizer, as JSON has it."""
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    try:
        return float(f"{float(value):.7g}")
    except (TypeError, ValueError):
        return str(value)


def _digest_of(flat: FlatModule) -> str:
    """A digest of the module's parts and of its parameters' names and shapes."""
    told = repr((str(flat.module), [(one.name, one.shapes) for one in flat.layout.layers]))
    return blake2b(told.encode(), digest_size=16).hexdigest()
