"""Tally: a run's totals so far; the same on all workers, and part of snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isnan, nan
from typing import Any

from sparknet.errors import SettingError
from sparknet.proto.suggest import did_you_mean
from sparknet.training.plan import RunPlan

Json = dict[str, Any]

_OF_A_WORKER = (
    "steps",
    "samples",
    "loss",
    "seconds_computing",
    "seconds_loading",
    "seconds_communicating",
    "seconds_waiting",
    "bytes_sent",
    "divergence",
    "clipped",
    "dropped_pushes",
)
_MEANS = tuple(name for name in _OF_A_WORKER if name.startswith("seconds_"))


def unknown_goal(metric: str) -> str:
    """Return the sentence for a metric whose better values are not known."""
    return (
        f"nothing says whether a larger or a smaller '{metric}' is better: give goal='max' or "
        "goal='min'"
    )


@dataclass
class Tally:
    """Sums over rounds, and the results of validations."""

    total_samples: int = 0
    steps_over: int = 0
    """Steps of single workers that make no whole iteration yet: see `_Rounds._keep_time`."""
    total_bytes_sent: int = 0
    """By all workers, for training: without the three that follow."""
    total_bytes_starting: int = 0
    total_bytes_validating: int = 0
    total_bytes_saving: int = 0
    """For snapshots."""
    total_seconds: float = 0.0
    computing: float = 0.0
    communicating: float = 0.0
    first_loss: float = inf
    best: float | None = None
    best_iteration: int = -1
    best_metrics: dict[str, float] = field(default_factory=dict)
    without_best: int = 0
    """Validations since the best one."""
    validated: int = -1
    """The iteration of the last validation."""
    metrics: dict[str, float] = field(default_factory=dict)

    @property
    def communication(self) -> float:
        """The share of the workers' time that communication took."""
        total = self.computing + self.communicating
        return self.communicating / total if total else 0.0

    def add(self, reports: Sequence[Json]) -> Json:
        """Add a round of all workers; returns its event's numbers."""
        count = len(reports)
        steps = sum(report["steps"] for report in reports)
        losses = (report["loss"] * report["steps"] for report in reports if report["steps"])
        event = {
            "steps": max(report["steps"] for report in reports),
            "samples": sum(report["samples"] for report in reports),
            "loss": sum(losses) / steps if steps else nan,
            "divergence": max(report["divergence"] for report in reports),
            "clipped": sum(report["clipped"] for report in reports),
            "dropped_pushes": sum(report["dropped_pushes"] for report in reports),
            "synchronised": count > 1 and reports[0]["synchronised"],
            **{name: sum(one[name] for one in reports) / count for name in _MEANS},
            "bytes_sent": sum(report["bytes_sent"] for report in reports),
            "workers": [{name: report[name] for name in _OF_A_WORKER} for report in reports],
        }
        self.total_samples += event["samples"]
        self.total_bytes_sent += sum(report["sent"] for report in reports)
        self.total_seconds = reports[0]["now"]
        self.computing += event["seconds_computing"]
        self.communicating += event["seconds_communicating"]
        if self.first_loss == inf and steps:
            self.first_loss = event["loss"]
        totals = ("total_samples", "total_bytes_sent", "total_seconds")
        return event | {name: getattr(self, name) for name in totals}

    def judge(self, metrics: dict[str, float], plan: RunPlan, iteration: int) -> bool:
        """Add a validation; returns whether it is the best so far."""
        self.metrics, self.validated = metrics, iteration
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
        better = not isnan(score) and (self.best is None or score > self.best)
        self.without_best = 0 if better else self.without_best + 1
        if better:
            self.best, self.best_iteration, self.best_metrics = score, iteration, metrics
        return better

    def forget_best(self) -> None:
        """Forget the best validation, because its weights are gone."""
        self.best, self.without_best = None, 0
