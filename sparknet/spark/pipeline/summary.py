"""TrainingSummary: what a fitted stage says of its training."""

from __future__ import annotations

from typing import Any

from sparknet.spark.train.result import SparkTrained
from sparknet.training.workers.rounds import Outcome


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
