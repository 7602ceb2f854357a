"""Training together: how workers reach each other, how they agree, and what they do.

Nothing here knows of Spark: the same `work` runs in threads, in processes and in Spark's tasks.
"""

from __future__ import annotations

from sparknet.dist.learner import Learner, SolverLearner
from sparknet.dist.plan import Hooks, Plan
from sparknet.dist.strategies import (
    BMUF,
    STRATEGIES,
    AllReduce,
    Auto,
    Averaging,
    DiLoCo,
    Downpour,
    DynamicAveraging,
    ElasticAveraging,
    SlowMo,
    Strategy,
    make_strategy,
)
from sparknet.dist.training import Trained, train
from sparknet.dist.worker import Outcome, work

__all__ = [
    "BMUF",
    "STRATEGIES",
    "AllReduce",
    "Auto",
    "Averaging",
    "DiLoCo",
    "Downpour",
    "DynamicAveraging",
    "ElasticAveraging",
    "Hooks",
    "Learner",
    "Outcome",
    "Plan",
    "SlowMo",
    "SolverLearner",
    "Strategy",
    "Trained",
    "make_strategy",
    "train",
    "work",
]
