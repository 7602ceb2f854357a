"""Planning: what training would cost, and which strategy to take."""

from __future__ import annotations

from sparknet.training.planning.advice import Planned, Row
from sparknet.training.planning.measurement import Measured
from sparknet.training.planning.planner import plan
from sparknet.training.planning.prediction import Predicted, predict
from sparknet.training.planning.trials import Trial, trial

__all__ = ["Measured", "Planned", "Predicted", "Row", "Trial", "plan", "predict", "trial"]
