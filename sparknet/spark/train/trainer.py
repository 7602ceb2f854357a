"""Trainer: the driver's side of training on Spark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sparknet import renamed
from sparknet.errors import SparkError
from sparknet.loaders.image_settings import ImageKeywords
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.net.first_records import check_names, class_numbers
from sparknet.net.recipe import Recipe, names_model
from sparknet.net.scratch import scratch_folder
from sparknet.net.weighting import WeighedNets, label_input
from sparknet.predict.columns import column_map, input_specs
from sparknet.predict.files import fetched, local_path
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.probe import footprint
from sparknet.spark.cluster.session import session_of
from sparknet.spark.filesystem.remote import open_runs
from sparknet.spark.hosts.task import Columns
from sparknet.spark.hosts.train import conduct, partitions
from sparknet.spark.predict.model import SparkModel
from sparknet.spark.predict.table import record_shapes, with_classes
from sparknet.spark.train.frame import COLUMN as WEIGHT
from sparknet.spark.train.frame import FrameWeights, frame, mapped, numbered, without_weights
from sparknet.spark.train.module import fit_module
from sparknet.spark.train.result import SparkTrained
from sparknet.training.checkpoints.runs import save_weights
from sparknet.training.driver.setup import NetSetup
from sparknet.training.events import Event
from sparknet.training.modules.keywords import ModuleKeywords, check_subject
from sparknet.training.planning.measurement import Runner
from sparknet.training.settings.fields import again, described, known_keywords, setting, values_of
from sparknet.training.settings.kinds import Choice, Kind, Number, Pairs, Unwritten
from sparknet.training.settings.training import RunSettings, StrPath, WithSolver
from sparknet.training.strategies import Strategy
from sparknet.training.training_net import training_net
from sparknet.weights import WeightCollection
from sparknet.weights.files import is_model_folder

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession


@described
@renamed.fields(init_weights="weights", weight="weight_column")
@known_keywords
@dataclass(frozen=True)
class Trainer(ImageKeywords, RunSettings, ModuleKeywords, WithSolver):
    """Trains the net of a solver (whatever `Net` takes) on the workers of a Spark cluster.

    In place of a solver it takes a ``module`` of PyTorch: docs/pytorch-modules.md.

    ``workers`` tasks run together in one barrier stage and synchronise by a strategy.  A run that
    lost a worker continues from its newest snapshot.  With ``min_workers`` each worker is a job of
    its own, and a run begins and goes on with as many as there are slots for
    (docs/spark-failures.md).
    Training ends after ``steps``, ``epochs`` or ``seconds``, with ``patience`` also when validation
    gets no better.

    Training waits for free slots, as every job of Spark does; the event ``waiting`` reports it.
    A change of what travels between workers and driver is detected.

    ``resize``, ``crop``, ``mean`` and the settings up to ``mirror`` say what happens to images:
    docs/images.md.  Images are stored as bytes, of the size that they are resized to; crops and
    mirrors are random.
    """

    solver: NetSource | Net | None = None  # type: ignore[assignment]
    strategy: str | Strategy = again(RunSettings, "strategy")
    workers: int = again(RunSettings, "workers")
    _: KW_ONLY
    weights: StrPath | WeightCollection | Net | SparkModel | None = setting(
        None,
        Kind(),
        "The initial weights: a caffemodel, a model, or a path of snapshots, of which the newest "
        "is used.",
    )
    columns: dict[str, str] | None = setting(
        None, Pairs(), "The columns of the net's blobs, where the names differ: blob → column."
    )
    invalid: Literal["raise", "drop"] = setting(
        "raise",
        Choice(("raise", "drop")),
        "What happens to a row that cannot be read or whose label is no class: raise fails the "
        "training, drop leaves the row out and counts it in the event workers.",
    )
    resources: Any = setting(
        None,
        Unwritten(),
        "A ResourceProfile of PySpark's for the tasks of this training, where they need other "
        "GPUs or cores than the session's (docs/gpu.md).",
    )
    start_timeout: float | None = setting(
        preflight.PATIENCE,
        Number(least=0, finite=False),
        "The time within which all workers must start, or min_workers of them; None is no limit.",
        "seconds",
        or_none=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_subject(self)

    def fit(
        self,
        data: DataFrame | RDD[Any],
        validation: DataFrame | RDD[Any] | None = None,
        resume: bool = False,
    ) -> SparkTrained:
        """Train on an RDD of tuples or dicts, or on a DataFrame; ``validation`` is another one.

        ``resume`` continues from the newest snapshot of the newest run, if there is one.
        An interruption (Ctrl-C) lets the workers finish their round and write a snapshot, and is
        raised again.
        """
        settings = RunSettings(**values_of(self, RunSettings))
        weights = FrameWeights(self.weight_column, self.class_weights)
        if self.module is not None:
            return fit_module(
                settings,
                self,
                data,
                validation,
                columns=self.columns,
                weights=self.weights,
                row_weights=weights,
                drops=self.invalid == "drop",
                resume=resume,
                patience=self.start_timeout,
                profile=self.resources,
            )
        if self.solver is None:
            raise SparkError("Trainer has no solver: Trainer(solver, …), or a module")
        session = session_of(data)
        runs = None if self.snapshots is None else open_runs(session, self.snapshots)
        nets = WeighedNets(partial(self._training_net, session), weights.is_given)
        setup = NetSetup(settings, runs, resume, validation is not None, nets.make)
        net = setup.net
        initial = setup.weights()
        setup.check(weights=initial.flat.size)
        rows = _Rows(nets, data, validation, self.columns, weights)
        precision = net.precision if isinstance(self.solver, Net) else self.precision
        outcome, trained, run = conduct(
            session,
            settings,
            setup,
            initial.flat,
            numbered(rows.training, rows.held, rows.mapping, partitions(settings)),
            rows.columns(net, self.invalid == "drop"),
            resume=resume,
            patience=self.start_timeout,
            needed=footprint(net),
            backend=net.backend.name,
            profile=self.resources,
            precision=precision,
        )
        nets.plain.set_weights(WeightCollection(initial.layout, trained))
        net = nets.plain
        net.labels = rows.labels
        result = SparkTrained(net.get_weights(), run.history, net, outcome, self.columns)
        return run.done(result)

    def _training_net(self, session: SparkSession, seed: int | None) -> Net:
        """Return the net with the initial weights."""
        weights: Any = self.weights
        with ExitStack() as stack:
            if (weights_given := weights_of(weights)) is not None:
                # By a file, whose layers are copied by name.
                weights = Path(stack.enter_context(scratch_folder()), "init.caffemodel")
                weights_given.save(weights)
            elif weights is not None and _is_folder(weights) and not is_model_folder(weights):
                folder = stack.enter_context(scratch_folder())
                runs_at = partial(open_runs, session)
                weights = save_weights(runs_at, os.fspath(weights), folder)
            path = stack.enter_context(fetched(weights, session))
            how, solver = Preprocessing.of(self), self.solver
            if names_model(solver):
                solver = stack.enter_context(fetched(solver, session))
            net = training_net(
                solver,
                path,
                seed,
                self.precision,
                how,
                self.backend,
                self.dialect,
                Recipe.of(self),
            )
            _ = net.solver  # builds the net, with these weights
        return net


class _Rows:
    """The training rows and those that are held out, with the columns that the net reads."""

    def __init__(
        self,
        nets: WeighedNets,
        data: Any,
        validation: Any,
        columns: dict[str, str] | None,
        weights: FrameWeights,
    ) -> None:
        entries = list(nets.plain.inputs)
        columns_of_entries = [column_map(columns).get(entry, entry) for entry in entries]
        more = [] if weights.column is None else [weights.column]
        self.training = frame(data, columns_of_entries + more, "the training data")
        self.mapping = mapped(self.training, entries, columns, "the training data")
        columns_read = self.mapping.values()
        self.training, self.labels = with_classes(
            self.training, columns_read, nets.plain.labels, "training data", learns=True
        )
        check_names(nets.plain, self.labels, "training data")
        self._plain = nets.plain
        self._told = record_shapes(self.training, self.mapping)
        self.held = None
        if validation is not None:
            self.held = frame(validation, columns_of_entries, "the validation data")
            columns_read = mapped(self.held, entries, columns, "the validation data").values()
            self.held, _ = with_classes(self.held, columns_read, self.labels, "validation data")
        if weights.is_given:
            self._weigh(nets, weights)

    def columns(self, net: Net, drops: bool) -> Columns:
        """Return what the workers read for the net that is trained."""
        classes = class_numbers(self._plain)
        return Columns(
            self.mapping, input_specs(net.inputs.values(), True, self._told, classes), drops
        )

    def _weigh(self, nets: WeighedNets, weights: FrameWeights) -> None:
        self.training = weights.added_to(
            self.training, self.mapping.get(label_input(nets.plain) or "")
        )
        if self.held is not None:
            self.held = without_weights(self.held)
        self.mapping |= dict.fromkeys(nets.weights, WEIGHT)


def weights_of(model: Any) -> WeightCollection | None:
    """Return the weights of a `Net`, or of a model of one; None of anything else."""
    if isinstance(model, WeightCollection):
        return model
    inner = model
    if not isinstance(model, Net):  # a stage of a pipeline has a SparkModel, and that a Net
        inner = getattr(getattr(model, "model", model), "net", None)
    return inner.get_weights() if isinstance(inner, Net) else None


def _is_folder(weights: StrPath) -> bool:
    """Return whether this is a folder of snapshots; a URL is told from a file of weights by its
    name.
    """
    if (here := local_path(weights)) is not None:
        return Path(here).is_dir()
    return not os.fspath(weights).endswith((".caffemodel", ".h5", ".onnx"))


_ANY_LOSS = 1e30


def runner(data: DataFrame | RDD[Any], **settings: Any) -> Runner:
    """Return what `sparknet.plan` takes as ``run``: short trainings on an RDD or a DataFrame.

    The settings are those of `Trainer`.
    """

    def run(solver: Any, workers: int, strategy: Strategy, seconds: float) -> Sequence[Event]:
        what = solver if isinstance(solver, dict) else {"solver": solver}  # or a module's keywords
        facts = {**settings, **what, "strategy": strategy, "workers": workers}
        trainer = Trainer(**facts, seconds=seconds, diverged=_ANY_LOSS)
        return trainer.fit(data).history

    return run
