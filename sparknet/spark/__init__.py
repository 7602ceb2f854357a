"""Training and prediction on the executors of a Spark cluster."""

from __future__ import annotations

from sparknet.spark.cutouts import cut_out
from sparknet.spark.mean import tree_mean
from sparknet.spark.model import SparkModel
from sparknet.spark.planning import planning_on
from sparknet.spark.reading import read_images, read_records
from sparknet.spark.session import get_session, local_session
from sparknet.spark.trainer import Trained, Trainer
from sparknet.spark.worker_cache import forget, kept

__all__ = [
    "SparkModel",
    "Trained",
    "Trainer",
    "cut_out",
    "forget",
    "get_session",
    "kept",
    "local_session",
    "planning_on",
    "read_images",
    "read_records",
    "tree_mean",
]
