"""Planning: what training would cost, and which strategy to take."""

from __future__ import annotations

from sparknet.dist.planning.measuring import Measured
from sparknet.dist.planning.planned import Planned, Row
from sparknet.dist.planning.planner import plan
from sparknet.dist.planning.predicting import Predicted, predict
from sparknet.dist.planning.trials import Trial, trial

__all__ = ["Measured", "Planned", "Predicted", "Row", "Trial", "plan", "predict", "trial"]
