"""SparkTrained: what `Trainer.fit` returns."""

from __future__ import annotations

from dataclasses import dataclass

from sparknet.spark.model import SparkModel
from sparknet.training.trained import Trained


@dataclass(frozen=True)
class SparkTrained(Trained):
    """The result of `Trainer.fit`."""

    columns: dict[str, str] | None = None

    @property
    def model(self) -> SparkModel:
        """The trained net, ready to predict from the columns that it was trained on.

        Of a module it is a `ModuleModel`.
        """
        return SparkModel(self.net, columns=self.columns)
