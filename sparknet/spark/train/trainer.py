"""Trainer: the driver's side of training on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from sparknet import renamed
from sparknet.loaders.image_settings import ImageKeywords
from sparknet.net import Net
from sparknet.net.description import NetSource
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.session import session_of
from sparknet.spark.hosts.task import Columns
from sparknet.spark.hosts.train import conduct, partitions
from sparknet.spark.predict.model import SparkModel
from sparknet.spark.train.frame import numbered
from sparknet.spark.train.opening import open_training
from sparknet.spark.train.result import SparkTrained, on_spark
from sparknet.training.events import Event
from sparknet.training.planning.measurement import Runner
from sparknet.training.settings.fields import again, described, known_keywords, setting, values_of
from sparknet.training.settings.kinds import Choice, Kind, Number, Pairs, Unwritten
from sparknet.training.settings.module import ModuleKeywords, check_subject
from sparknet.training.settings.training import (
    RunSettings,
    StrPath,
    TableKeywords,
    WithSolver,
)
from sparknet.training.strategies import Strategy
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame


@described
@renamed.fields(init_weights="weights", weight="weight_column")
@known_keywords
@dataclass(frozen=True)
class Trainer(ImageKeywords, TableKeywords, RunSettings, ModuleKeywords, WithSolver):
    """Trains the net of a solver (whatever `Net` takes) on the workers of a Spark cluster.

    In place of a solver it takes a ``module`` of PyTorch: docs/pytorch-modules.md.

    ``workers`` tasks run together in one barrier stage and synchronise by a strategy.  A run that
    lost a worker continues from its newest snapshot.  With ``hosts`` or ``min_hosts`` a host is a
    job of one task, which carries several workers, and a run begins and goes on with as many hosts
    as there are slots for (docs/spark-failures.md).
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
        "The time within which all hosts must start, or min_hosts of them; None is no limit.",
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
        session, settings = session_of(data), self.run_settings
        opening = open_training(self, session, data, validation, resume)
        setup = opening.setup
        mapping, shapes = opening.mapping, opening.shapes
        outcome, trained, run = conduct(
            session,
            settings,
            setup,
            setup.weights().flat,
            numbered(opening.training, opening.held_out, mapping, partitions(settings), shapes),
            Columns(mapping, shapes, self.invalid == "drop"),
            resume=resume,
            patience=self.start_timeout,
            needed=opening.needed,
            profile=self.resources,
            **opening.changed,
        )
        result = setup.trained(outcome, trained, run.history)
        return run.done(on_spark(result, opening.columns))

    @property
    def run_settings(self) -> RunSettings:
        """The settings of the run itself; tasks of several workers are jobs of their own."""
        settings = RunSettings(**values_of(self, RunSettings))
        if settings.hosts is None or settings.min_hosts is not None:
            return settings
        return replace(settings, min_hosts=settings.hosts)


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
