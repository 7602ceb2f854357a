"""Comparison: sets of runs beside each other, each with mean and standard error over its seeds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

from sparknet.graph.table import aligned
from sparknet.summary.events import single
from sparknet.summary.report.reading import Json, ReportedRun, RunSet
from sparknet.summary.spread import Spread, difference

Values = Mapping[Hashable, float]


def comparison(sets: Sequence[RunSet]) -> Json:
    """The tables as an experiment: what each set reached, and how the others differ from the first.

    A set's value of a metric is that of the last validation of each of its runs.
    """
    names = list(dict.fromkeys(name for one in sets for run in one.runs for name in _facts(run)))
    by_name = {name: [_values(one, name) for one in sets] for name in names}
    reached = [
        [
            one.name,
            len(one.runs),
            *(str(Spread.of(by_name[name][place].values())) for name in names),
        ]
        for place, one in enumerate(sets)
    ]
    first, *others = sets
    apart = [
        [other.name, name, *_apart(by_name[name][0], by_name[name][place])]
        for place, other in enumerate(others, 1)
        for name in names
        if by_name[name][0] and by_name[name][place]
    ]
    parts: list[Json] = [
        {
            "title": "What the runs reached",
            "text": "Means over the runs ± the standard error of the mean.",
            "tables": [{"head": ["", "runs", *names], "rows": reached}],
        }
    ]
    if apart:
        parts.append(
            {
                "title": f"Against {first.name}",
                "text": "A difference counts as seen where Student's t gives it 95% confidence. "
                "Runs of the same seeds are compared in pairs.",
                "tables": [{"head": ["", "", "difference", "seeds", "verdict"], "rows": apart}],
            }
        )
    return {"event": "experiment", "title": " and ".join(one.name for one in sets), "parts": parts}


def text(content: Json) -> Iterator[str]:
    """The tables of a comparison, for a terminal."""
    for part in content["parts"]:
        yield from ("", part["title"])
        for table in part["tables"]:
            lines = [[str(cell) for cell in row] for row in (table["head"], *table["rows"])]
            yield from aligned(lines, words=len(table["head"]))


def _values(one: RunSet, name: str) -> Values:
    """A number of each run of a set, by its seeds; a place in the set where they are not known."""
    found: dict[Hashable, float] = {}
    for place, run in enumerate(one.runs):
        facts = _facts(run)
        if name in facts:
            seeds = run.start.get("seeds") or [None]
            key: Hashable = (one.name, place) if None in seeds else tuple(seeds)
            found[(key, place) if key in found else key] = facts[name]
    return found


def _facts(run: ReportedRun) -> dict[str, float]:
    """What is compared of a run."""
    facts: dict[str, float] = {}
    validations = run.of_kind("validation")
    if validations:
        facts |= {name: float(value) for name, value in single(validations[-1]["metrics"]).items()}
    if run.rounds:
        facts["training loss"] = float(run.rounds[-1]["loss"])
        facts["iterations"] = float(run.rounds[-1]["iteration"])
    placed = run.placed()
    if placed:
        facts["seconds"] = placed[-1][0].time
    if "total_bytes_sent" in run.stop:
        facts["MB sent"] = run.stop["total_bytes_sent"] / 1e6
    return facts


def _apart(first: Values, second: Values) -> list[str]:
    found = difference(first, second)
    shared = f"{found.spread.count} pairs" if found.paired else "not paired"
    return [str(found.spread), shared, found.verdict]
