"""ModuleSetup: a training of a module before it has workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from time import perf_counter
from typing import Any

from sparknet.errors import SettingError
from sparknet.native import NDArray
from sparknet.net.scores import Goal
from sparknet.proto.byte_source import StrPath
from sparknet.torch.modules.calling import ModuleLoss
from sparknet.torch.modules.flat_module import FlatModule, ModuleParts, PortableModule, packed
from sparknet.torch.modules.saved_module import code_of
from sparknet.torch.modules.trial import try_out
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
from sparknet.training.result import NO_NET, TrainedModule
from sparknet.training.settings.module import ModuleKeywords
from sparknet.training.settings.training import RunSettings
from sparknet.training.strategies import AllReduce
from sparknet.training.workers.rounds import Outcome
from sparknet.weights import WeightCollection

_BATCH = 32


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
        self._order_seed = given.seed or 0
        self._loss = ModuleLoss(parts.loss)
        self._weights = weights
        if weights is not None:
            self._loss.check_weights()
        self._judges = try_out(parts.module, self._loss, inputs, how.targets, first, weights)
        self.flat = FlatModule(parts.module)
        self._batch_size = (how.batch_size or _BATCH) * how.accumulate
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
    def batch_size(self) -> int:
        return self._batch_size

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

    def seconds_of_passes(self, records: Mapping[str, Any]) -> float:
        """Roughly, for one of these records."""
        module, targets = self._parts.module, self._how.targets
        start = perf_counter()
        try_out(module, self._loss, self._inputs, targets, records, self._weights, backward=True)
        return (perf_counter() - start) / len(next(iter(records.values())))

    def portable(self) -> PortableModule:
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
    flat: FlatModule, weights: StrPath | WeightCollection | None, runs_at: Callable[[str], Runs]
) -> None:
    """Begin with these weights: a collection, or those of the newest snapshot at a path."""
    if weights is None:
        return
    if isinstance(weights, (str, os.PathLike)):
        weights = model(*find(runs_at, os.fspath(weights)))
    if not isinstance(weights, WeightCollection):
        raise SettingError(
            "weights of a module are a WeightCollection or a path of snapshots, not "
            f"{type(weights).__name__}: load a state_dict into the module"
        )
    flat.layout.check(weights.layout, "the module's initial weights")
    for name, (values,) in WeightCollection(flat.layout, flat.weights).items():
        values.copy_from(weights[name][0])
    flat.push()


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
