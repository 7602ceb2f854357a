"""Validating: the model's metrics after a round, and the weights that were the best so far."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from sparknet.native import NDArray
from sparknet.net.scores import NAMES, finished
from sparknet.training.plan import Validate

if TYPE_CHECKING:
    from sparknet.training.rounds import Rounds

Json = dict[str, Any]


def validate(rounds: Rounds) -> None:
    if rounds.hooks.validate is None:
        return
    begun, before = rounds.comm.clock(), rounds.comm.traffic.sent
    model = rounds.learner.weights
    if rounds.comm.size > 1:
        model = rounds.strategy.model(rounds.learner, rounds.comm, rounds.state)
    records, metrics = _measured(rounds, rounds.hooks.validate, model)
    sent = rounds.sent_since(before)
    rounds.tally.total_bytes_validating += sent
    best = rounds.tally.judge(metrics, rounds.plan, rounds.learner.iter)
    if best and rounds.best is not None:
        rounds.best.copy_from(model)
    spent = rounds.comm.clock() - begun
    odd = [name for name, value in metrics.items() if not isfinite(value) and _is_mean(name)]
    if odd:
        text = f"'{odd[0]}' of the validation is {metrics[odd[0]]}: its records are not finite"
        rounds.say("note", text=text, doubt=True)
    said = {"records": records, "metrics": metrics, "best": best}
    rounds.say("validation", **said, bytes_sent=sent, seconds=spent)


def _is_mean(name: str) -> bool:
    """Return whether a metric is no score: those may be NaN, as of a class without records."""
    return name.partition("[")[0] not in NAMES


def _measured(rounds: Rounds, measure: Validate, model: NDArray) -> tuple[int, dict[str, float]]:
    weights = rounds.learner.weights
    trained = weights.copy() if model is not weights else None
    if trained is not None:
        weights.copy_from(model)
    rounds.learner.settle()
    try:
        count, means = measure()
    finally:
        if trained is not None:
            weights.copy_from(trained)
    records, joined = _joined(rounds.comm.gather({"records": count, "metrics": means}))
    return records, finished(joined, rounds.hooks.metrics, records)


def take_best(rounds: Rounds) -> int | None:
    """Restore the weights of the best validation; returns their iteration if they changed.

    The solvers' histories stay those of the last iteration.
    """
    tally = rounds.tally
    if not rounds.keeps_best or tally.best is None or not tally.without_best:
        return None
    if rounds.best is not None:
        rounds.learner.weights.copy_from(rounds.best)
    rounds.comm.broadcast(rounds.learner.weights)
    tally.metrics = tally.best_metrics
    return tally.best_iteration


def _joined(parts: Sequence[Json]) -> tuple[int, dict[str, float]]:
    """The means over all records, from the means of the workers' parts."""
    total = sum(int(part["records"]) for part in parts)
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part["metrics"].items():
            sums[name] = sums.get(name, 0.0) + value * part["records"]
    return total, {name: value / total for name, value in sums.items()} if total else {}
