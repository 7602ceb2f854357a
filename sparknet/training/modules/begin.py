"""A training of a module: what is checked before it begins, and its result."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from html import escape
from time import perf_counter
from typing import Any, NoReturn

from sparknet.errors import SettingError, SpecError, extra
from sparknet.native import NDArray
from sparknet.net.heads import Kind
from sparknet.net.scores import Goal
from sparknet.torch.modules.calling import ModuleLoss, evaluation_mode, tensor
from sparknet.torch.modules.flat_module import (
    FlatModule,
    ModuleParts,
    PortableModule,
    check_parameters,
    packed,
)
from sparknet.torch.modules.named_code import NamedCode
from sparknet.torch.modules.saved_module import (
    Array,
    SavedModule,
    StrPath,
    called,
    code_of,
    save_module,
)
from sparknet.torch.modules.updater import (
    FlatOptimizer,
    ScheduledRates,
    is_elementwise,
    made_optimizer,
    settings_of_groups,
)
from sparknet.training.checkpoints.runs import Runs, find
from sparknet.training.checkpoints.snapshot import model
from sparknet.training.driver.setup import RunSetup
from sparknet.training.history import History
from sparknet.training.modules.keywords import ModuleKeywords
from sparknet.training.result import Trained
from sparknet.training.settings.training import RunSettings
from sparknet.training.strategies import AllReduce
from sparknet.training.workers.rounds import Outcome
from sparknet.weights import WeightCollection

_BATCH = 32


def parts_of(how: ModuleKeywords) -> ModuleParts:
    """Return a copy of the module with its loss and optimizer; nothing of the user's is changed."""
    with extra("torch", "torch", "a module of PyTorch"):
        import torch
    module, optimizer, schedule = how.module, how.optimizer, how.lr_schedule
    if hasattr(module, "_orig_mod"):
        raise SettingError("module is compiled: give the module that torch.compile was given")
    if isinstance(module, torch.jit.ScriptModule):
        raise SettingError("module is TorchScript: give the module that it was made of")
    if isinstance(module, torch.nn.Module):
        try:
            module, optimizer, schedule = copy.deepcopy((module, optimizer, schedule))
        except Exception as error:
            kind = type(module).__name__
            raise SettingError(f"module '{kind}' cannot be copied: {_line(error)}") from error
    else:
        module = called(module)
    check_parameters(module)
    made_optimizer(optimizer, module)  # may be refused
    return ModuleParts(module, how.loss, optimizer, schedule)


class ModuleSetup(RunSetup):
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
        weights: str | None = None,
    ) -> None:
        """``inputs`` are the columns of the module's arguments, ``first`` a few records,
        ``weights`` the column of their weights."""
        self._how, self._parts, self._inputs = how, parts, inputs
        self._first = {name: first[column] for name, column in inputs.items()}
        self._order_seed = given.seed
        self._loss = ModuleLoss(parts.loss)
        self._weights = weights
        if weights is not None:
            self._loss.check_weights()
        self._judges = try_out(parts.module, self._loss, inputs, how.targets, first, weights)
        self.flat = FlatModule(parts.module)
        self.batch_size = (how.batch_size or _BATCH) * how.accumulate
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
        """Return the result of a run."""
        self.flat.weights.copy_from(weights)
        self.flat.push()
        collection = WeightCollection(self.flat.layout, weights)
        return TrainedModule(
            collection,
            history,
            NO_NET,
            outcome,
            module=self.flat.module,
            inputs=self._inputs,
            first=self._first,
            kind=self._loss.kind,
            made_by=code_of(self._how.module),
        )

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
            "module": _digest_of(self.flat),
            "optimizer": type(optimizer).__name__,
            **_told_of(settings_of_groups(optimizer)),
            "clip_gradients": self._how.clip_gradients,
            "accumulate": self._how.accumulate,
            "buffers": self._how.buffers,
        }

    def _known_metrics(self) -> Collection[str]:
        return ("loss", "accuracy") if self._judges else ("loss",)

    def _known_goals(self) -> Mapping[str, Goal]:
        return {"loss": "min", "accuracy": "max"}

    def weights(self) -> WeightCollection:
        return WeightCollection(self.flat.layout, self.flat.weights)

    @property
    def sent(self) -> PortableModule:
        """The module with its loss and optimizer, as workers get it."""
        return self._sent()

    def seconds_of_passes(self, records: Mapping[str, Any]) -> float:
        """Roughly, for one of these records."""
        module, targets = self._parts.module, self._how.targets
        start = perf_counter()
        try_out(module, self._loss, self._inputs, targets, records, self._weights, backward=True)
        return (perf_counter() - start) / len(next(iter(records.values())))

    def _sent(self) -> PortableModule:
        return PortableModule(
            data=packed(self._parts),
            inputs=self._inputs,
            targets=self._how.targets,
            batch_size=self._how.batch_size or _BATCH,
            buffers=self._how.buffers,
            clip_gradients=self._how.clip_gradients,
            device="cpu",
            accumulate=self._how.accumulate,
            precision=self.settings.precision,
            weights=self._weights,
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
    weights: str | None = None,
    backward: bool = False,
) -> bool:
    """Refuse a module or a loss that fails on a few records; returns whether there is an accuracy.

    This makes the parameters of modules that wait for their first input.
    """
    import torch

    kind = type(module).__name__
    tensors = {name: tensor(first[column], True) for name, column in inputs.items()}
    real = [tensor(first[name], False) for name in targets]
    shapes = ", ".join(f"'{name}' {tuple(one.shape)}" for name, one in tensors.items())
    with torch.random.fork_rng(devices=[]), evaluation_mode(module), _same_buffers(module):
        try:
            outputs = module(**tensors)
        except Exception as error:
            raise SettingError(
                f"module '{kind}' fails on the first records, {shapes}: {_line(error)}"
            ) from error
        try:
            loss_value = loss(
                outputs, real, None if weights is None else tensor(first[weights], True)
            )
            accuracy = loss.judged(outputs, real)[2]
        except SettingError:
            raise
        except Exception as error:
            raise SettingError(
                f"the loss fails on the first records of module '{kind}': {_line(error)}"
            ) from error
        if backward:
            learned = [one for one in module.parameters() if one.requires_grad]
            torch.autograd.grad(loss_value, learned, allow_unused=True)
        if not loss_value.requires_grad:
            raise SettingError(f"the loss of module '{kind}' does not depend on its parameters")
    return accuracy is not None


@contextmanager
def _same_buffers(module: Any) -> Iterator[None]:
    """Whatever a pass makes of the buffers, they are afterwards what they were."""
    from torch.nn.parameter import is_lazy

    buffers_before = [
        (part._buffers, name, one, one.clone())
        for part in module.modules()
        for name, one in part._buffers.items()
        if one is not None and not is_lazy(one)
    ]
    yield
    for buffers, name, one, values in buffers_before:
        one.copy_(values)
        buffers[name] = one


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _told_of(groups: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return an optimizer's settings by what they are called where a resumed run has others."""
    settings: dict[str, Any] = {}
    for number, group in enumerate(groups):
        of = "" if len(groups) == 1 else f", group {number},"
        settings |= {f"optimizer{of} {name}": _plain(value) for name, value in group.items()}
    return settings


def _plain(value: Any) -> Any:
    """Return a setting of an optimizer, as JSON has it."""
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    try:
        return float(f"{float(value):.7g}")
    except (TypeError, ValueError):
        return str(value)


def _digest_of(flat: FlatModule) -> str:
    """Return a digest of the module's parts and of its parameters' names and shapes."""
    text = repr((str(flat.module), [(one.name, one.shapes) for one in flat.layout.layers]))
    return blake2b(text.encode(), digest_size=16).hexdigest()


class NoNet:
    """What stands in the place of the net."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise SpecError("a module was trained and no net: the result has it as module")

    def __repr__(self) -> str:
        return "no net"


@dataclass(frozen=True)
class TrainedModule(Trained):
    """The result of training a module; `module` is a copy of the user's, with trained weights."""

    inputs: dict[str, str] = field(default_factory=dict, kw_only=True, repr=False)
    """The arguments of its forward → the columns that it was trained on."""
    first: Mapping[str, Array] = field(default_factory=dict, kw_only=True, repr=False)
    """A few records by argument, which say what the module is given."""
    kind: Kind | None = field(default=None, kw_only=True)
    """What the loss takes the numbers of the first output for."""
    made_by: NamedCode | None = field(default=None, kw_only=True, repr=False)
    """What makes such a module, if that has a name."""

    def save(self, path: StrPath) -> None:
        """Write a folder of the weights and the name of what makes the module, which
        `sparknet.load` and `ModuleModel.load` read; a .safetensors with a JSON file beside it too.
        """
        save_module(self.module, self.saved(), path)

    def saved(self) -> SavedModule:
        """Return what a file says of it."""
        return SavedModule.of(self.module, self.made_by, self.inputs, self.first, self.kind)

    def _described(self) -> str:
        return f"<pre>{escape(str(self.module))}</pre>"


NO_NET: Any = NoNet()
