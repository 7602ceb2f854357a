"""The runs, plans and experiments that a report shows, and the comparison of sets of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparknet.errors import FileError
from sparknet.graph.summary import aligned
from sparknet.report.log import ABOUT, EVENTS
from sparknet.training.history import Event, History, single
from sparknet.training.planning.trials import Spread, difference

Json = dict[str, Any]

AXES = ("samples", "time", "epochs")


@dataclass(frozen=True)
class Point:
    """Where an event stands on each axis; None where that is not known."""

    samples: float
    time: float
    epochs: float | None

    def on(self, axis: str) -> float | None:
        value: float | None = getattr(self, axis)
        return value


@dataclass(frozen=True)
class ReportedRun:
    """A run: its events, and what is known of its surroundings."""

    name: str
    events: Sequence[Json]
    about: Json = field(default_factory=dict)

    def of_kind(self, kind: str) -> list[Json]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def rounds(self) -> list[Json]:
        return self.of_kind("round")

    @property
    def start(self) -> Json:
        return next(iter(self.of_kind("start")), {})

    @property
    def last_start(self) -> Json:
        """That of the last training, where the run was resumed."""
        return next(iter(self.of_kind("start")[-1:]), {})

    @property
    def is_alone(self) -> bool:
        """Whether it has a single worker, which sends nothing to others."""
        return bool(self.last_start.get("workers") == 1)

    @property
    def stop(self) -> Json:
        return next(iter(self.of_kind("stop")[-1:]), {})

    def points(self) -> list[tuple[Point, Json]]:
        """Return the events of rounds and validations, with their places on the axes."""
        points, samples, spent = [], 0.0, 0.0
        for event in self.events:
            if event["event"] not in ("round", "validation"):
                continue
            samples = _number(event.get("total_samples"), samples + _of_round(event, "samples"))
            spent = _number(event.get("total_seconds"), spent + _seconds(event))
            epoch = event.get("epoch")
            points.append((Point(samples, spent, None if epoch is None else float(epoch)), event))
        return points


@dataclass(frozen=True)
class RunSet:
    """Several runs of the same training, with a seed each."""

    name: str
    runs: Sequence[ReportedRun]


@dataclass(frozen=True)
class Document:
    """A plan or an experiment: one JSON object."""

    name: str
    content: Json


def read(path: str | os.PathLike[str]) -> ReportedRun | RunSet | Document:
    """Return a run's folder, a folder of several such folders or logs, a log, or the JSON of a
    plan or an experiment.
    """
    place = Path(path)
    if place.is_dir():
        return _folder(place)
    text = _text(place)
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if isinstance(content, dict) and content.get("event") in ("plan", "experiment"):
        return Document(place.stem, content)
    return ReportedRun(place.stem, History.read(place).events)


def _folder(place: Path) -> ReportedRun | RunSet:
    logs = [place / EVENTS] if (place / EVENTS).is_file() else sorted(place.glob("*.jsonl"))
    inner = sorted(log.parent for log in place.glob(f"*/{EVENTS}"))
    if inner and not logs:
        return RunSet(place.name or str(place), [_run(one, [one / EVENTS]) for one in inner])
    return _run(place, logs)


def _run(place: Path, logs: Sequence[Path]) -> ReportedRun:
    if not logs:
        fault = f"holds no run: there is no {EVENTS} in it; train with --run-folder"
        raise FileError(place, fault)
    about: Json = {}
    if (place / ABOUT).is_file():
        try:
            about = json.loads(_text(place / ABOUT))
        except ValueError as error:
            raise FileError(place / ABOUT, f"is no JSON: {error}") from error
        if not isinstance(about, dict):
            raise FileError(place / ABOUT, "does not describe a run")
    return ReportedRun(place.name or str(place), History.read(logs[-1]).events, about)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise FileError(path, "does not exist") from error
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        fault = "is no text: a report is made of a run's folder, a log of events, or a plan's JSON"
        raise FileError(path, fault) from error


def _number(value: Any, otherwise: float) -> float:
    return float(value) if isinstance(value, (int, float)) else otherwise


def _of_round(event: Event, field: str) -> float:
    return _number(event.get(field), 0.0) if event["event"] == "round" else 0.0


def _seconds(event: Event) -> float:
    return _of_round(event, "seconds_computing") + _of_round(event, "seconds_communicating")


Values = Mapping[Hashable, float]


def comparison(sets: Sequence[RunSet]) -> Json:
    """Return the tables as an experiment: what each set reached, and how the others differ from
    the first.

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
    """Yield the tables of a comparison, for a terminal."""
    for part in content["parts"]:
        yield from ("", part["title"])
        for table in part["tables"]:
            lines = [[str(cell) for cell in row] for row in (table["head"], *table["rows"])]
            yield from aligned(lines, words=len(table["head"]))


def _values(one: RunSet, name: str) -> Values:
    """Return a number of each run of a set, by its seeds; a place in the set where they are not
    known.
    """
    values: dict[Hashable, float] = {}
    for place, run in enumerate(one.runs):
        facts = _facts(run)
        if name in facts:
            seeds = run.start.get("seeds") or [None]
            key: Hashable = (one.name, place) if None in seeds else tuple(seeds)
            values[(key, place) if key in values else key] = facts[name]
    return values


def _facts(run: ReportedRun) -> dict[str, float]:
    """Return what is compared of a run."""
    facts: dict[str, float] = {}
    validations = run.of_kind("validation")
    if validations:
        facts |= {name: float(value) for name, value in single(validations[-1]["metrics"]).items()}
    if run.rounds:
        facts["training loss"] = float(run.rounds[-1]["loss"])
        facts["iterations"] = float(run.rounds[-1]["iteration"])
    points = run.points()
    if points:
        facts["seconds"] = points[-1][0].time
    if "total_bytes_sent" in run.stop:
        facts["MB sent"] = run.stop["total_bytes_sent"] / 1e6
    return facts


def _apart(first: Values, second: Values) -> list[str]:
    distance = difference(first, second)
    shared = f"{distance.spread.count} pairs" if distance.paired else "not paired"
    return [str(distance.spread), shared, distance.verdict]
