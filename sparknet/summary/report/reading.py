"""Reading what a report is made of: a run's folder, a log of events, a plan, an experiment."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparknet.errors import FileError
from sparknet.summary.events import Event
from sparknet.summary.history import History
from sparknet.summary.run_folder import ABOUT, EVENTS

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

    def placed(self) -> list[tuple[Point, Json]]:
        """The events of rounds and validations, with their places on the axes."""
        found, samples, spent = [], 0.0, 0.0
        for event in self.events:
            if event["event"] not in ("round", "validation"):
                continue
            samples = _number(event.get("total_samples"), samples + _of_round(event, "samples"))
            spent = _number(event.get("total_seconds"), spent + _seconds(event))
            epoch = event.get("epoch")
            found.append((Point(samples, spent, None if epoch is None else float(epoch)), event))
        return found


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
    """A run's folder, a folder of several such folders or logs, a log, or the JSON of a plan or an
    experiment."""
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
