"""Metrics after a round: validation, the best weights, and histograms of each layer."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from sparknet.native import NDArray
from sparknet.net.scores import NAMES, finished
from sparknet.training.early_stopping import judge
from sparknet.training.schedule import Validate
from sparknet.training.workers.state import RunState
from sparknet.weights import Layout, Span

Json = dict[str, Any]


def validate(rounds: RunState) -> None:
    if rounds.hooks.validate is None:
        return
    start, before = rounds.comm.clock(), rounds.comm.traffic.sent
    model = rounds.learner.weights
    if rounds.comm.size > 1:
        model = rounds.strategy.model(rounds.learner, rounds.comm, rounds.state)
    records, metrics = _measured(rounds, rounds.hooks.validate, model)
    nbytes = rounds.sent_since(before)
    rounds.tally.total_bytes_validating += nbytes
    best = judge(rounds.tally, metrics, rounds.plan, rounds.learner.iter)
    if best and rounds.best is not None:
        rounds.best.copy_from(model)
    spent = rounds.comm.clock() - start
    odd = [name for name, value in metrics.items() if not isfinite(value) and _is_mean(name)]
    if odd:
        text = f"'{odd[0]}' of the validation is {metrics[odd[0]]}: its records are not finite"
        rounds.say("note", text=text, doubt=True)
    figures = {"records": records, "metrics": metrics, "best": best}
    rounds.say("validation", **figures, bytes_sent=nbytes, seconds=spent)


def _is_mean(name: str) -> bool:
    """Return whether a metric is no score: those may be NaN, as of a class without records."""
    return name.partition("[")[0] not in NAMES


def _measured(rounds: RunState, measure: Validate, model: NDArray) -> tuple[int, dict[str, float]]:
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


def take_best(rounds: RunState) -> int | None:
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
    """Return the means over all records, from the means of the workers' parts."""
    total = sum(int(part["records"]) for part in parts)
    sums: dict[str, float] = {}
    for part in parts:
        for name, value in part["metrics"].items():
            sums[name] = sums.get(name, 0.0) + value * part["records"]
    return total, {name: value / total for name, value in sums.items()} if total else {}


BINS = 30
"""Of equal width, from the least to the largest value that was counted."""
COUNTED = 1 << 14
"""The most values of a blob that a histogram counts, or a few less."""


def look(layout: Layout, weights: NDArray, gradients: NDArray) -> list[Json]:
    """Return a dict for each blob of parameters; those that layers share appear once."""
    spans, layers = set[Span](), []
    for layer in layout.layers:
        for number, (begin, end) in enumerate(layer.spans):
            if begin == end or (begin, end) in spans:
                continue
            spans.add((begin, end))
            both = {"weights": weights[begin:end], "gradients": gradients[begin:end]}
            summaries = {kind: summary(values) for kind, values in both.items()}
            layers.append({"layer": layer.name, "blob": number, "size": end - begin, **summaries})
    return layers


def summary(values: NDArray) -> Json:
    """Return the norm (None if it is not finite), and the counts between ``low`` and ``high``."""
    norm, some = values.norm2(), values.numpy()[:: -(-values.size // COUNTED)]
    if not isfinite(norm):
        some = some[np.isfinite(some)]
    low, high = (float(some.min()), float(some.max())) if some.size else (0.0, 0.0)
    counts = np.zeros(BINS, np.int64)
    if low < high:
        # np.histogram rounds in float32, and refuses ranges that it cannot divide
        places = (some.astype(np.float64) - low) * (BINS / (high - low))
        counts = np.bincount(np.minimum(places.astype(np.int64), BINS - 1), minlength=BINS)
    else:
        counts[BINS // 2] = some.size
    return {
        "norm": norm if isfinite(norm) else None,
        "low": low,
        "high": high,
        "counts": counts.tolist(),
    }
