"""RunSetup: a run before it has workers."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sparknet.caffe.training_checks import check_loss, warn_of_idle
from sparknet.comm.rpc import Link
from sparknet.errors import SettingError, outside
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import Records
from sparknet.native import NDArray
from sparknet.net import Net
from sparknet.net.entries import UnknownShape
from sparknet.net.portable import Portable, portable_solver
from sparknet.net.record_checks import find_odd
from sparknet.net.scores import GOALS, Goal
from sparknet.net.weighting import WeighedNets
from sparknet.proto.solver import check_step
from sparknet.proto.suggest import did_you_mean
from sparknet.torch.modules.flat_module import PortableModule
from sparknet.training.checkpoints.runs import Runs, find_resumed, identity
from sparknet.training.checkpoints.store import Store
from sparknet.training.early_stopping import unknown_goal
from sparknet.training.history import History
from sparknet.training.result import Trained
from sparknet.training.settings.training import RunSettings
from sparknet.training.strategies import make_strategy
from sparknet.training.training_net import check_backend, seed_of, settings
from sparknet.training.workers.rounds import Outcome
from sparknet.training.workers.run_spec import RunSpec
from sparknet.weights import WeightCollection, layout_of

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision


Begin = tuple[RunSettings, Runs | None, bool, bool]
"""What a `RunSetup` is given first."""


class RunSetup(ABC):
    """A run before it has workers: what it resumes from, and what identifies it."""

    name: str
    """What is trained, for events."""

    def __init__(
        self,
        given: RunSettings,
        runs: Runs | None,
        resume: bool,
        validates: bool,
    ) -> None:
        self._runs, self._validates = runs, validates
        self.resumed = find_resumed(runs, resume)
        resumed_seed = None if self.resumed is None else self.resumed.seed
        self._make(resumed_seed)
        self.strategy = make_strategy(given.strategy)
        if self.strategy.depends_on_time and (given.hosts or given.min_hosts):
            warnings.warn(
                f"{self.strategy.name} depends on measured times: with other hosts, or after the "
                "loss of one, a run ends with other weights",
                stacklevel=outside(),
            )
        self.settings = self._with_end(replace(given, strategy=self.strategy))
        self.identity = {
            "seed": self._seed(resumed_seed),
            "order_seed": given.seed or 0,
            "shuffle": given.shuffle,
            **self._identity(),
        }
        self.settings.plan(self.name, validates)  # may be refused
        self.goals: dict[str, Goal] = {}
        for name in ("metric", "metrics", "goal"):
            if not validates and getattr(given, name):
                value = getattr(given, name)
                raise SettingError(f"{name}={value!r} is for validation, and there is none")
        if validates:
            goals = {name: GOALS[name] for name in given.metrics if name in GOALS}
            self.goals = {**self._known_goals(), **goals}
            self._check_metric(given)

    @abstractmethod
    def _make(self, seed: int | None) -> None:
        """Make what is trained; ``seed`` is that of the run that is resumed."""

    @abstractmethod
    def _seed(self, resumed: int | None) -> int:
        """Return the seed of random numbers."""

    @abstractmethod
    def _identity(self) -> dict[str, Any]:
        """Return what else must be the same in a run that is resumed."""

    @abstractmethod
    def _known_metrics(self) -> Collection[str] | None:
        """Return the metrics that validation will give; None where that is not known before."""

    @abstractmethod
    def _known_goals(self) -> Mapping[str, Goal]:
        """Return whether larger or smaller values are better, of the model's own metrics."""

    @abstractmethod
    def weights(self) -> WeightCollection:
        """Return the initial weights, once shapes are known; refuse what cannot be trained."""

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """The records of a worker's iteration."""

    @abstractmethod
    def trained(self, outcome: Outcome, weights: NDArray, history: History) -> Trained:
        """Return the result of a run."""

    @abstractmethod
    def portable(self) -> Portable | PortableModule:
        """Return what is trained, as workers get it."""

    @property
    def precision(self) -> Precision:
        """The precision of multiplications."""
        return self.settings.precision

    def look_for_cause(self, records: Records) -> None:  # noqa: B027 - of nets alone
        """Raise for records that explain why a training diverged."""

    @property
    def preprocessing(self) -> Preprocessing | None:
        """What was asked for images."""
        return None

    def _with_end(self, given: RunSettings) -> RunSettings:
        """Return the settings with an end."""
        if (given.steps, given.epochs, given.seconds) == (None, None, None):
            raise SettingError("training has no end: give steps, epochs or seconds")
        return given

    def _check_metric(self, given: RunSettings) -> None:
        """Refuse a metric that no validation will give, or whose better values are not known."""
        if (given.metric, given.goal, given.patience) == (None, None, None):
            return
        names, metric = self._known_metrics(), given.metric
        all_names = None if names is None else [*names, *given.metrics]
        if metric is None:
            is_known = given.patience is None or not self.goals.keys().isdisjoint(all_names or ())
            if not all_names or (given.goal is None and is_known):
                return
            metric = all_names[0]
        name = metric.partition("[")[0]
        if all_names is not None and name not in all_names:
            near = did_you_mean(metric, all_names)
            raise SettingError(
                f"metric is '{metric}', and validation gives {sorted(all_names)}{near}"
            )
        known_goal = self.goals.get(name)
        if given.goal is None and known_goal is None:
            raise SettingError(unknown_goal(metric))
        if given.goal is not None and known_goal not in (None, given.goal):
            raise SettingError(
                f"goal is '{given.goal}', and for '{metric}' it is '{known_goal}': a better model "
                "would lose"
            )

    def check(self, **known: Any) -> None:
        """Refuse to resume a run that differs in what is known by now."""
        if self.resumed is not None:
            mine = {"strategy": self.strategy.settings()}
            self.resumed.check({**mine, **known, **self.identity})

    def open_store(self) -> Store | None:
        """Return the store of this run's snapshots; it makes a folder, so refusals come before."""
        if self._runs is None:
            return None
        self._runs.prepare()
        return self._runs.begin() if self.resumed is None else self.resumed.store

    def spec(self, link: Link, folder: str | None = None, **changed: Any) -> RunSpec:
        """Return what the workers are given; ``folder`` is that of snapshots, if they reach it."""
        settings = self.settings
        return RunSpec(
            link=link,
            solver=self.portable(),
            seed=self.identity["seed"],
            net=self.name,
            settings=replace(
                settings,
                on_event=None,
                head=None,
                lr_mult=None,
                shapes=None,
                batch_axis=None,
                class_weights=None,
                snapshots=None if settings.snapshots is None else os.fspath(settings.snapshots),
                **changed,
            ),
            validates=self._validates,
            goals=self.goals,
            folder=folder,
            identity=self.identity,
            preprocessing=self.preprocessing,
        )


class NetSetup(RunSetup):
    """That of a net with its solver."""

    net: Net

    def __init__(
        self,
        given: RunSettings,
        runs: Runs | None,
        resume: bool,
        validates: bool,
        nets: WeighedNets,
    ) -> None:
        self._nets, self._keeps, self._given_seed = nets, runs is not None, given.seed
        super().__init__(given, runs, resume, validates)

    def _make(self, seed: int | None) -> None:
        self.net = self._nets.make(seed)
        self.name = self.net.described.name
        if self.net.backend.is_embedded:
            check_step(settings(self.net))

    def _seed(self, resumed: int | None) -> int:
        return seed_of(self.net, resumed, self._given_seed)

    def _identity(self) -> dict[str, Any]:
        return identity(self.net)

    def _known_metrics(self) -> Collection[str] | None:
        try:
            tested = self.net.tested
        except UnknownShape:  # the data says it later
            return None
        if tested.evaluated:  # which name their metrics themselves
            return None
        return tested.measured(dict.fromkeys(tested.net.outputs))

    def _known_goals(self) -> Mapping[str, Goal]:
        return self.net.goals

    def weights(self) -> WeightCollection:
        check_backend(self.net, self.strategy, self._keeps)
        check_loss(self.net.net)
        return WeightCollection.of(self.net.net, copy=None)

    def open_store(self) -> Store | None:
        if self.resumed is None and self.net.backend.is_embedded:
            warn_of_idle(self.net.net, settings(self.net))
        return super().open_store()

    def portable(self) -> Portable:
        return portable_solver(settings(self.net))

    @property
    def batch_size(self) -> int:
        return self.net.batch_size * int(settings(self.net).iter_size)

    @property
    def precision(self) -> Precision:
        return self.net.precision

    def trained(self, outcome: Outcome, weights: NDArray, history: History) -> Trained:
        net = self._nets.plain
        net.set_weights(WeightCollection(layout_of(self.net.net), weights))
        return Trained(net.get_weights(), history, net, outcome)

    def look_for_cause(self, records: Records) -> None:
        find_odd(self._nets.plain, records, "training data")

    @property
    def preprocessing(self) -> Preprocessing | None:
        return self.net.preprocessing

    def spec(self, link: Link, folder: str | None = None, **changed: Any) -> RunSpec:
        device = self.settings.device or self.net.backend.named_device
        backend = self.net.backend.name
        return super().spec(link, folder, backend=backend, device=device, **changed)

    def _with_end(self, given: RunSettings) -> RunSettings:
        """Return the settings with an end: the solver's max_iter where they have none."""
        if (given.steps, given.epochs, given.seconds) != (None, None, None):
            return given
        steps = int(settings(self.net).max_iter)
        if not steps:
            raise SettingError(
                "training has no end: give steps, epochs or seconds, or max_iter in the solver"
            )
        return replace(given, steps=steps)
