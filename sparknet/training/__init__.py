"""Training together: how workers reach each other, how they synchronise, and what they do.

Nothing here knows of Spark: the same `work` runs in threads, in processes and in Spark's tasks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparknet import renamed
from sparknet.net.learner import Learner, SolverLearner
from sparknet.net.pycaffe_learner import PycaffeLearner
from sparknet.training import strategies
from sparknet.training.local_training import train
from sparknet.training.result import Interrupted, Trained
from sparknet.training.schedule import Hooks, RunPlan
from sparknet.training.strategies import *  # noqa: F403 - their names are listed there, once
from sparknet.training.virtual import Cluster, simulate
from sparknet.training.workers.rounds import Outcome, work

__all__ = [
    "Cluster",
    "Hooks",
    "Interrupted",
    "Learner",
    "Outcome",
    "PycaffeLearner",
    "RunPlan",
    "SolverLearner",
    "Trained",
    "simulate",
    "train",
    "work",
]
__all__ += strategies.__all__

if not TYPE_CHECKING:
    __getattr__ = renamed.names(__name__, Plan=RunPlan)
