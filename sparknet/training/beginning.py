"""Beginning: a run before it has workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sparknet.caffe.idle import warn_of_idle
from sparknet.errors import SettingError
from sparknet.net import Net
from sparknet.proto.solver import check_step
from sparknet.proto.suggest import did_you_mean
from sparknet.training.identity import identity
from sparknet.training.line import Link
from sparknet.training.portable import portable_solver
from sparknet.training.run_spec import RunSpec
from sparknet.training.runs import Runs, find_resumed
from sparknet.training.store import Store
from sparknet.training.strategies import make_strategy
from sparknet.training.training_net import check_backend, seed_of, settings
from sparknet.training.training_settings import RunSettings
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from sparknet.caffe.precision import Precision


class Beginning:
    """A run before it has workers: its net, what it resumes from, and what identifies it."""

    def __init__(
        self,
        given: RunSettings,
        runs: Runs | None,
        resume: bool,
        validates: bool,
        make_net: Callable[[int | None], Net],
    ) -> None:
        """``make_net`` is given the seed of the run that is resumed."""
        self._runs, self._validates = runs, validates
        self.resumed = find_resumed(runs, resume)
        resumed_seed = None if self.resumed is None else self.resumed.seed
        self.net = make_net(resumed_seed)
        if self.net.backend.is_embedded:
            check_step(settings(self.net))
        strategy = make_strategy(given.strategy)
        self.settings = _with_end(replace(given, strategy=strategy), self.net)
        self._check_backend = partial(check_backend, self.net, strategy, runs is not None)
        self._strategy = strategy.settings()
        seed = seed_of(self.net, resumed_seed)
        self.identity = identity(self.net, seed, given.seed, given.shuffle)
        self.settings.plan(self.net.described.name, validates)  # may be refused
        if validates and given.metric is not None:
            self._check_metric(given.metric)

    def _check_metric(self, metric: str) -> None:
        """Refuse a metric that no validation will give."""
        tested = self.net.tested
        if tested.evaluated:  # which name their metrics themselves
            return
        known = [*tested.measured(dict.fromkeys(tested.net.outputs)), *self.settings.metrics]
        if metric.partition("[")[0] not in known:
            near = did_you_mean(metric, known)
            raise SettingError(f"metric is '{metric}', and validation gives {sorted(known)}{near}")

    def weights(self) -> WeightCollection:
        """The initial weights, once the net's shapes are known; refuses what cannot be trained."""
        self._check_backend()
        return WeightCollection.of(self.net.net, copy=None)

    def check(self, **known: Any) -> None:
        """Refuse to resume a run that differs in what is known by now."""
        if self.resumed is not None:
            mine = {"workers": self.settings.workers, "strategy": self._strategy}
            self.resumed.check({**mine, **known, **self.identity})

    def open_store(self) -> Store | None:
        """Where this run's snapshots go.  It makes a folder, so all refusals come before it."""
        if self.resumed is None and self.net.backend.is_embedded:
            warn_of_idle(self.net.net)
        if self._runs is None:
            return None
        self._runs.prepare()
        return self._runs.begin() if self.resumed is None else self.resumed.store

    def spec(self, link: Link, precision: Precision, folder: str | None = None) -> RunSpec:
        """What the workers are given; ``folder`` is that of snapshots, if they reach it."""
        given = self.settings
        return RunSpec(
            link=link,
            solver=portable_solver(settings(self.net)),
            seed=self.identity["seed"],
            net=self.net.described.name,
            settings=replace(
                given,
                on_event=None,
                head=None,
                lr_mult=None,
                shapes=None,
                batch_axis=None,
                snapshots=None if given.snapshots is None else os.fspath(given.snapshots),
                backend=self.net.backend.name,
                precision=precision,
            ),
            validates=self._validates,
            folder=folder,
            identity=self.identity,
            preprocessing=self.net.preprocessing,
        )


def _with_end(given: RunSettings, net: Net) -> RunSettings:
    """The settings with an end: the solver's max_iter where they have none."""
    if (given.steps, given.epochs, given.seconds) != (None, None, None):
        return given
    steps = int(settings(net).max_iter)
    if not steps:
        raise SettingError(
            "training has no end: give steps, epochs or seconds, or max_iter in the solver"
        )
    return replace(given, steps=steps)
