"""Trainer: the driver's side of training on Spark."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Literal

import numpy as np

from sparknet.dist.events import Event, OnEvent
from sparknet.dist.plan import ENDLESS, Plan
from sparknet.dist.snapshot import newest, read_manifest
from sparknet.dist.store import Store
from sparknet.dist.strategies import Strategy, make_strategy
from sparknet.dist.training import check_precision
from sparknet.dist.worker import Outcome
from sparknet.errors import SettingError
from sparknet.net import Net
from sparknet.spark import preflight
from sparknet.spark.address import driver_address, session_of
from sparknet.spark.assignment import Assignment
from sparknet.spark.control import Control
from sparknet.spark.frame import frame, mapped, numbered
from sparknet.spark.hadoop import open_store
from sparknet.spark.model import SparkModel
from sparknet.spark.portable import portable_solver
from sparknet.spark.run import Run
from sparknet.weights import WeightCollection

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Trained:
    """What `Trainer.fit` gives."""

    weights: WeightCollection
    history: list[Event]
    """All events (`sparknet.dist.events`)."""
    net: Net
    """With the trained weights."""
    outcome: Outcome

    @property
    def model(self) -> SparkModel:
        """The trained net, ready to predict columns of a DataFrame."""
        return SparkModel(self.net)


@dataclass(frozen=True)
class Trainer:
    """Trains the net of a solver (whatever `Net` takes) on the workers of a Spark cluster.

    ``workers`` tasks run together in one barrier stage and agree by ``strategy``.  Training ends
    after ``steps`` iterations (the solver's max_iter unless given), ``epochs`` or ``seconds``.
    ``columns`` maps the net's blobs to the data's columns, where the names differ.
    ``snapshots`` is any path that Spark can write; a run that lost a worker goes on from the
    newest one, and so does a new run with ``resume``.  ``seed`` is that of the order of records.
    ``ports`` are those that workers may listen on, for firewalled clusters.
    ``precision="bf16"`` multiplies in bfloat16, on those workers that can: docs/precision.md.
    """

    solver: Any
    strategy: str | Strategy = "averaging"
    workers: int = 2
    _: KW_ONLY
    init_weights: StrPath | None = None
    columns: dict[str, str] | None = None
    steps: int | None = None
    epochs: float | None = None
    seconds: float | None = None
    validate_every: int = 10
    metric: str | None = None
    goal: Literal["max", "min"] | None = None
    patience: int | None = None
    snapshots: str | None = None
    snapshot_every: int = 0
    keep: int = 3
    seed: int = 0
    shuffle: bool = True
    ports: Sequence[int] = (0,)
    deadline: float = 60.0
    precision: str = "float32"
    on_event: OnEvent | None = None

    def fit(self, data: Any, validation: Any = None, resume: bool = False) -> Trained:
        """Train on an RDD of tuples or dicts, or on a DataFrame.

        An interruption (Ctrl-C) lets the workers finish their round and snapshot, and is raised
        again.
        """
        session = session_of(data)
        store = None if self.snapshots is None else open_store(session, self.snapshots)
        kept_seed = _kept_seed(store) if resume else None
        net = self._net(kept_seed)
        entries = list(net.inputs)
        training = frame(data, entries, "the training data")
        mapping = mapped(training, entries, self.columns, "the training data")
        held = None
        if validation is not None:
            held = frame(validation, entries, "the validation data")
            mapped(held, entries, self.columns, "the validation data")
        weights = np.asarray(net.net.flat_params).data.cast("B")
        run = Run(session, f"sparknet: training {net.net.name}", self.on_event)
        with Control(run.secret, weights, store, run.hear, resume) as control:
            assignment = Assignment(
                run=run.id,
                driver=driver_address(session, control.port),
                secret=run.secret,
                solver=portable_solver(_settings(net)),
                seed=_seed(net) if kept_seed is None else kept_seed,
                mapping=mapping,
                shapes={name: entry.stored for name, entry in net.inputs.items()},
                strategy=make_strategy(self.strategy).settings(),
                plan=asdict(self._plan(net)),
                epochs=self.epochs,
                order_seed=self.seed,
                shuffle=self.shuffle,
                validates=held is not None,
                keeps=store is not None,
                ports=tuple(self.ports),
                deadline=self.deadline,
                precision=net.precision if net is self.solver else self.precision,
            )
            preflight.check(session, self.workers, assignment.driver)
            rows = numbered(training, held, mapping, self.workers)
            run.train(control, rows, assignment, self.workers)
            outcome, trained = run.result(control)
        net.net.flat_params.copy_from(trained)
        return Trained(net.get_weights(), run.history, net, outcome)

    def _net(self, seed: int | None) -> Net:
        net = self.solver
        if not isinstance(net, Net):
            net = Net(self.solver, self.init_weights, seed=seed, precision=self.precision)
        else:
            check_precision(net, self.precision)
            if self.init_weights is not None:
                net.load(self.init_weights)
        _settings(net)
        if net.flat_weights is None:
            raise SettingError("Trainer needs the embedded engine: this Net has another backend")
        return net

    def _plan(self, net: Net) -> Plan:
        if self.steps is not None and self.epochs is not None:
            raise SettingError("give steps or epochs, not both")
        steps = self.steps
        if steps is None and self.epochs is None and self.seconds is None:
            steps = int(_settings(net).max_iter)
        return Plan(
            # What so many epochs are in steps is known when the records have been counted.
            steps=ENDLESS if self.epochs is not None else steps,
            seconds=self.seconds,
            validate_every=self.validate_every,
            metric=self.metric,
            goal=self.goal,
            patience=self.patience,
            snapshot_every=self.snapshot_every if self.snapshots is not None else 0,
            keep=self.keep,
            net=net.net.name,
        )


def _settings(net: Net) -> Any:
    if net.settings is None:
        raise SettingError("Trainer needs a solver: a net alone does not say how it is trained")
    return net.settings


def _seed(net: Net) -> int:
    given = int(_settings(net).random_seed)
    return given if given >= 0 else secrets.randbits(31)


def _kept_seed(store: Store | None) -> int | None:
    if store is None:
        raise SettingError("resume needs snapshots, the path where they are")
    round = newest(store)
    return None if round is None else int(read_manifest(store, round)["run"]["seed"])
