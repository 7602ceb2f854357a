"""Training and predicting where the data lives: Spark's side of sparknet."""

from __future__ import annotations

from sparknet.spark.session import local_session

__all__ = ["local_session"]
