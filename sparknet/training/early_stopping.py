"""Early stopping: which validation is the best, and how long training waits for a better one."""

from __future__ import annotations

from math import isnan

from sparknet.errors import SettingError
from sparknet.proto.suggest import did_you_mean
from sparknet.training.schedule import RunPlan, Tally


def unknown_goal(metric: str) -> str:
    """Return the sentence for a metric whose better values are not known."""
    return (
        f"nothing says whether a larger or a smaller '{metric}' is better: give goal='max' or "
        "goal='min'"
    )


def judge(tally: Tally, metrics: dict[str, float], plan: RunPlan, iteration: int) -> bool:
    """Add a validation; return whether it is the best so far."""
    tally.metrics, tally.validated = metrics, iteration
    if not metrics:
        return False
    name = plan.metric or next(iter(metrics))
    if name not in metrics:
        near = did_you_mean(name, metrics)
        raise SettingError(f"metric is '{name}', and validation gives {sorted(metrics)}{near}")
    goal = plan.goal or plan.goals.get(name.partition("[")[0])
    if goal is None:
        if plan.metric is not None or plan.patience is not None:
            raise SettingError(unknown_goal(name))
        return False
    score = metrics[name] if goal == "max" else -metrics[name]
    better = not isnan(score) and (tally.best is None or score > tally.best)
    tally.without_best = 0 if better else tally.without_best + 1
    if better:
        tally.best, tally.best_iteration, tally.best_metrics = score, iteration, metrics
    return better


def is_out_of_patience(tally: Tally, plan: RunPlan) -> bool:
    """Return whether too many validations came after the best one."""
    return plan.patience is not None and tally.without_best >= plan.patience
