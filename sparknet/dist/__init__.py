"""Training together: how workers reach each other, how they synchronise, and what they do.

Nothing here knows of Spark: the same `work` runs in threads, in processes and in Spark's tasks.
"""

from __future__ import annotations

from sparknet.dist import strategies
from sparknet.dist.learner import Learner, SolverLearner
from sparknet.dist.plan import Hooks, Plan
from sparknet.dist.pycaffe_learner import PycaffeLearner
from sparknet.dist.strategies import *  # noqa: F403 - their names are listed there, once
from sparknet.dist.training import Trained, train
from sparknet.dist.virtual import Cluster, simulate
from sparknet.dist.worker import Outcome, work

__all__ = [
    "Cluster",
    "Hooks",
    "Learner",
    "Outcome",
    "Plan",
    "PycaffeLearner",
    "SolverLearner",
    "Trained",
    "simulate",
    "train",
    "work",
]
__all__ += strategies.__all__
