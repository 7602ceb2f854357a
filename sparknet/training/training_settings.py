"""TrainingSettings: what `train` and `Trainer` are told alike, and how a run begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from math import inf
from typing import Any, Literal

from sparknet.caffe.idle import warn_of_idle
from sparknet.errors import SettingError
from sparknet.net import Net
from sparknet.net.scores import check_names
from sparknet.training.events import OnEvent
from sparknet.training.identity import identity
from sparknet.training.line import Link
from sparknet.training.plan import Plan
from sparknet.training.portable import portable_solver
from sparknet.training.run_spec import RunSpec
from sparknet.training.runs import Runs, find_resumed
from sparknet.training.store import Store
from sparknet.training.strategies import Strategy, make_strategy
from sparknet.training.training_net import check_backend, last_step, seed_of, settings
from sparknet.weights import WeightCollection

Protection = Literal["sealed", "encrypted", "none"]


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Documented where users meet them: `sparknet.train` and `sparknet.spark.Trainer`."""

    workers: int
    strategy: str | Strategy
    steps: int | None
    epochs: float | None
    seconds: float | None
    validate_every: int
    histograms_every: int
    metrics: Sequence[str]
    metric: str | None
    goal: Literal["max", "min"] | None
    patience: int | None
    diverged: float
    snapshots: Any
    snapshot_every: int
    keep: int
    seed: int
    shuffle: bool
    ports: Sequence[int]
    deadline: float
    protection: Protection | None
    on_event: OnEvent | None

    @classmethod
    def of(cls, source: Any) -> TrainingSettings:
        """Those among the attributes of an object, or the items of a dictionary."""
        values = source if isinstance(source, dict) else vars(source)
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    def check(self) -> None:
        """Refuse what only the workers would notice."""
        if type(self.seed) is not int:
            raise SettingError(f"seed must be a whole number, not {self.seed!r}")
        if not isinstance(self.deadline, (int, float)) or not 0 < self.deadline < inf:
            raise SettingError(f"deadline must be more than 0 seconds, not {self.deadline!r}")
        if not isinstance(self.ports, (list, tuple, range)) or not all(map(_is_port, self.ports)):
            raise SettingError(f"ports must be a list of numbers up to 65535, not {self.ports!r}")
        check_names(self.metrics)
        if self.snapshot_every and self.snapshots is None:
            raise SettingError(f"snapshot_every={self.snapshot_every} needs snapshots, a path")
        if self.on_event is not None and not callable(self.on_event):
            raise SettingError(f"on_event must be a function of an event, not {self.on_event!r}")

    def plan(self, net: Net, validates: bool) -> Plan:
        """What ``epochs`` are in steps, and the records, are known when these have been counted."""
        return Plan(
            steps=last_step(net, self.steps, self.epochs, self.seconds),
            seconds=self.seconds,
            validate_every=self.validate_every if validates else 0,
            histograms_every=self.histograms_every,
            metric=self.metric,
            goal=self.goal,
            patience=self.patience,
            diverged=self.diverged,
            snapshot_every=self.snapshot_every,
            keep=self.keep,
            net=net.described.name,
        )


class Beginning:
    """A run before it has workers: its net, what it resumes from, and what identifies it."""

    def __init__(
        self,
        given: TrainingSettings,
        runs: Runs | None,
        resume: bool,
        make_net: Callable[[int | None], Net],
    ) -> None:
        """``make_net`` is given the seed of the run that is resumed."""
        given.check()
        self._given, self._runs = given, runs
        self.resumed = find_resumed(runs, resume)
        resumed_seed = None if self.resumed is None else self.resumed.seed
        self.net = make_net(resumed_seed)
        strategy = make_strategy(given.strategy)
        self._strategy = strategy.settings()
        self._check_backend = partial(check_backend, self.net, strategy, runs is not None)
        seed = seed_of(self.net, resumed_seed)
        self.identity = identity(self.net, seed, given.seed, given.shuffle)
        last_step(self.net, given.steps, given.epochs, given.seconds)

    def weights(self) -> WeightCollection:
        """The initial weights, once the net's shapes are known; refuses what cannot be trained."""
        self._check_backend()
        return WeightCollection.of(self.net.net, copy=None)

    def check(self, **known: Any) -> None:
        """Refuse to resume a run that differs in what is known by now."""
        if self.resumed is not None:
            mine = {"workers": self._given.workers, "strategy": self._strategy}
            self.resumed.check({**mine, **known, **self.identity})

    def open_store(self) -> Store | None:
        """Where this run's snapshots go.  It makes a folder, so all refusals come before it."""
        if self.resumed is None and self.net.flat_weights is not None:
            warn_of_idle(self.net.net)
        if self._runs is None:
            return None
        self._runs.prepare()
        return self._runs.begin() if self.resumed is None else self.resumed.store

    def spec(
        self, link: Link, validates: bool, store: Store | None, folder: str | None, precision: str
    ) -> RunSpec:
        """What the workers are given."""
        given = self._given
        return RunSpec(
            link=link,
            solver=portable_solver(settings(self.net)),
            seed=self.identity["seed"],
            precision=precision,
            backend=self.net.backend.name,
            strategy=self._strategy,
            plan=asdict(given.plan(self.net, validates)),
            epochs=given.epochs,
            order_seed=given.seed,
            shuffle=given.shuffle,
            validates=validates,
            keeps=store is not None,
            folder=folder,
            identity=self.identity,
            ports=tuple(given.ports),
            deadline=given.deadline,
            metrics=tuple(given.metrics),
            preprocessing=self.net.preprocessing,
        )


def _is_port(number: object) -> bool:
    return type(number) is int and 0 <= number < 1 << 16
