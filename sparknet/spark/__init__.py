"""Training and prediction on the executors of a Spark cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparknet import renamed
from sparknet.predict.worker_cache import cached, clear_cache
from sparknet.spark.cluster.session import get_session, local_session
from sparknet.spark.filesystem.reading import read_images, read_records
from sparknet.spark.filesystem.videos import read_videos
from sparknet.spark.predict.cutouts import cut_out
from sparknet.spark.predict.model import ModuleModel, SparkModel
from sparknet.spark.predict.states import transform_with_states
from sparknet.spark.rdd.net_rdd import NetRDD, net_rdd, tree_mean
from sparknet.spark.train.result import SparkTrained
from sparknet.spark.train.trainer import Trainer, runner

__all__ = [
    "ModuleModel",
    "NetRDD",
    "SparkModel",
    "SparkTrained",
    "Trainer",
    "cached",
    "clear_cache",
    "cut_out",
    "get_session",
    "local_session",
    "net_rdd",
    "read_images",
    "read_records",
    "read_videos",
    "runner",
    "transform_with_states",
    "tree_mean",
]

if not TYPE_CHECKING:
    __getattr__ = renamed.names(
        __name__, Trained=SparkTrained, forget=clear_cache, kept=cached, planning_on=runner
    )
