"""runner: measures for `sparknet.plan` on a Spark cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sparknet.spark.trainer import Trainer
from sparknet.training.events import Event
from sparknet.training.planning.measuring import Runner
from sparknet.training.strategies import Strategy

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame

_ANY_LOSS = 1e30


def runner(data: DataFrame | RDD[Any], **settings: Any) -> Runner:
    """What `sparknet.plan` takes as ``run``: short trainings on an RDD or a DataFrame.

    The settings are those of `Trainer`.
    """

    def run(solver: Any, workers: int, strategy: Strategy, seconds: float) -> Sequence[Event]:
        what = solver if isinstance(solver, dict) else {"solver": solver}  # or a module's keywords
        told = {**settings, **what, "strategy": strategy, "workers": workers}
        trainer = Trainer(**told, seconds=seconds, diverged=_ANY_LOSS)
        return trainer.fit(data).history

    return run
