"""SparkTrained: what `Trainer.fit` returns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sparknet.net.files import local_path
from sparknet.predict.module_predictor import ModulePredictor
from sparknet.spark.predict.model import SparkModel, StrPath
from sparknet.training.result import Trained, TrainedModule
from sparknet.training.workers.rounds import Outcome


@dataclass(frozen=True)
class SparkTrained(Trained):
    """The result of `Trainer.fit`."""

    columns: dict[str, str] | None = None

    @property
    def model(self) -> SparkModel:
        """The trained net or module, ready to predict from the columns that it was trained on."""
        return SparkModel(self.net, columns=self.columns)

    def save(self, path: StrPath) -> None:
        """Save the same with its training columns, to any path that Spark can write."""
        if local_path(path) is None:
            self.model.save(path)
        else:
            super().save(path)

    def _columns(self) -> dict[str, str]:
        return self.columns or {}


@dataclass(frozen=True)
class SparkTrainedModule(SparkTrained, TrainedModule):
    """The result of training a module on Spark."""

    @property
    def model(self) -> SparkModel:
        predictor = ModulePredictor(
            self.module, columns=self.inputs, records=self.first, kind=self.kind
        )
        predictor.model.made_by = self.made_by
        return SparkModel.of(predictor)

    def save(self, path: StrPath) -> None:
        """Write the same as `SparkModel.save`, to any path that Spark can write."""
        self.model.save(path)


def on_spark(result: Trained, columns: dict[str, str] | None) -> SparkTrained:
    """Return the result of a run with the columns that it was trained on."""
    values: dict[str, Any] = {one.name: getattr(result, one.name) for one in fields(result)}
    if isinstance(result, TrainedModule):
        return SparkTrainedModule(**values | {"columns": columns, "inputs": columns})
    return SparkTrained(**values, columns=columns)


class TrainingSummary:
    """The course of a training, as `NetModel.summary`."""

    def __init__(self, trained: SparkTrained) -> None:
        self.events: list[dict[str, Any]] = trained.history.events
        """All events of the run: `sparknet.training.events`."""
        self.outcome: Outcome = trained.outcome
        """Why it ended, and the last metrics."""

    @property
    def objectiveHistory(self) -> list[float]:  # noqa: N802
        """The mean loss of each round."""
        return [event["loss"] for event in self.events if event["event"] == "round"]

    @property
    def validationHistory(self) -> list[dict[str, float]]:  # noqa: N802
        """The metrics of each validation."""
        return [event["metrics"] for event in self.events if event["event"] == "validation"]

    @property
    def totalIterations(self) -> int:  # noqa: N802
        return self.outcome.iteration

    @property
    def metrics(self) -> dict[str, float]:
        """Those of the last validation."""
        return self.outcome.metrics

    def __repr__(self) -> str:
        return (
            f"<TrainingSummary: {self.totalIterations} iterations, ended by {self.outcome.reason}>"
        )
