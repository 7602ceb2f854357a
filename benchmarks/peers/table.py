"""The results as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from statistics import median
from typing import Any

from benchmarks.peers.match import Result, Score

Costs = dict[str, dict[str, float]]


def as_dict(results: Sequence[Result], costs: Costs, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        **facts,
        "results": [_result(one) for one in results],
        "geometric_means": _means(results),
        "imports": costs,
    }


def _result(one: Result) -> dict[str, Any]:
    return {
        "net": one.contest.name,
        "batch": one.contest.batch,
        "mode": one.mode,
        "precision": one.precision,
        "notes": one.notes,
        "sides": [_side(one, score) for score in one.scores],
    }


def _side(one: Result, score: Score) -> dict[str, Any]:
    side: dict[str, Any] = {
        "library": score.library,
        "variant": score.variant,
        "ms": median(score.ms),
        "turns_ms": score.ms,
        "peak_memory": score.memory,
    }
    if score is not one.scores[0]:
        ratios = one.ratios(score)
        side["ratio"] = {"min": min(ratios), "median": median(ratios), "max": max(ratios)}
    return side


def _means(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Geometric means of the median ratios, for each kind of pass and each library."""
    logs: dict[tuple[str, str, str], list[float]] = {}
    for one in results:
        for score in one.scores[1:]:
            library = "sparknet float32" if score.library == "sparknet" else score.library
            key = (library, one.mode, one.precision)
            logs.setdefault(key, []).append(log(median(one.ratios(score))))
    return [
        {
            "library": library,
            "mode": mode,
            "precision": precision,
            "nets": len(values),
            "ratio": exp(sum(values) / len(values)),
        }
        for (library, mode, precision), values in logs.items()
    ]


def as_text(found: dict[str, Any]) -> str:
    """The results as Markdown."""
    lines = _rows(
        ("net", "batch", "pass", "numbers", "library", "ms", "ratio: min, median, max", "peak MB"),
        (
            (
                one["net"],
                str(one["batch"]),
                one["mode"],
                one["precision"],
                f"{side['library']} {side['variant']}".strip(),
                f"{side['ms']:.2f}",
                _ratio(side),
                f"{side['peak_memory'] / 1e6:.0f}",
            )
            for one in found["results"]
            for side in one["sides"]
        ),
    )
    if found["geometric_means"]:
        lines += ["", "Geometric means of the median ratios:", ""]
        lines += [
            f"- {mean['mode']}, {mean['precision']}, against {mean['library']}: "
            f"{mean['ratio']:.2f} over {mean['nets']} nets"
            for mean in found["geometric_means"]
        ]
    imports = (
        (statement, f"{cost['ms']:.0f}", f"{cost['memory'] / 1e6:.0f}")
        for statement, cost in found["imports"].items()
    )
    lines += ["", *_rows(("statement", "ms", "resident MB"), imports)]
    notes = [
        f"- {one['net']}, {one['mode']}: {note}"
        for one in found["results"]
        for note in one["notes"]
    ]
    if notes:
        lines += ["", "Notes:", "", *notes]
    lines += ["", f"{found['threads']} threads, {found['rounds']} rounds; {found['processor']}."]
    return "\n".join(lines)


def _ratio(side: dict[str, Any]) -> str:
    ratio = side.get("ratio")
    return "" if ratio is None else f"{ratio['min']:.2f} {ratio['median']:.2f} {ratio['max']:.2f}"


def _rows(head: Sequence[str], rows: Any) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
