"""SparkTrained: what `Trainer.fit` returns."""

from __future__ import annotations

from dataclasses import dataclass

from sparknet.predict.files import local_path
from sparknet.spark.predict.model import SparkModel, StrPath
from sparknet.training.result import Trained


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

    def save(self, path: StrPath) -> None:
        """Save the same with its training columns, to any path that Spark can write."""
        if local_path(path) is None:
            self.model.save(path)
        else:
            super().save(path)

    def _columns(self) -> dict[str, str]:
        return self.columns or {}
