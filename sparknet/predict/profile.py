"""Profile: where the time of a prediction goes, by task and in all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sparknet.atomic_files import atomic_file
from sparknet.graph.summary import aligned
from sparknet.proto.byte_source import StrPath

PHASES = {
    "input": "JVM and Arrow: waiting for rows",
    "columns": "columns to arrays, all threads",
    "decoding": "  decoding",
    "resizing": "  resizing",
    "copies": "  copies",
    "tokens": "  tokens of texts",
    "waiting": "net waiting for arrays",
    "model": "opening the model",
    "net": "net",
    "results": "results to columns",
    "writing": "Arrow and JVM: writing rows",
}
"""The phases of a task, and what they are called.

A task reads rows and makes arrays of them in threads of their own, so the first five overlap with
the others: what the net waits for, its own time and what follows add up to the task's seconds.
"""


@dataclass(frozen=True)
class TaskProfile:
    """A task of a prediction."""

    stage: int
    partition: int
    rows: int
    seconds: float
    phases: dict[str, tuple[float, int]]
    """Seconds and bytes."""


class Profile:
    """The tasks of a prediction that have ended: `SparkModel.transform(…, profile=True)`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: dict[tuple[int, int], TaskProfile] = {}
        """By stage and partition; the newest attempt counts."""

    @property
    def rows(self) -> int:
        return sum(task.rows for task in self.tasks.values())

    @property
    def seconds(self) -> float:
        """The seconds of all tasks together."""
        return sum(task.seconds for task in self.tasks.values())

    @property
    def phases(self) -> dict[str, tuple[float, int]]:
        """Phase → its seconds and bytes in all tasks."""
        sums = {}
        for phase in PHASES:
            parts = [task.phases[phase] for task in self.tasks.values() if phase in task.phases]
            if parts:
                sums[phase] = sum(seconds for seconds, _ in parts), sum(size for _, size in parts)
        return sums

    def save(self, path: StrPath) -> None:
        """Write a JSON file that `sparknet report` shows."""
        title = f"Where the time of {self.name} goes"
        table = {"head": _HEAD, "rows": [*self._sums()]}
        tasks = {
            "head": ["stage", "partition", "rows", "seconds", *(f"{one}, s" for one in PHASES)],
            "rows": [
                [
                    *(task.stage, task.partition, task.rows, round(task.seconds, 3)),
                    *(round(task.phases.get(phase, (0.0, 0))[0], 3) for phase in PHASES),
                ]
                for task in self.tasks.values()
            ],
        }
        content = {
            "event": "experiment",
            "title": title,
            "parts": [
                {"title": "All tasks", "text": f"{self._summary()}.", "tables": [table]},
                {"title": "Tasks", "tables": [tasks]},
            ],
        }
        with atomic_file(path) as draft:
            draft.write_text(json.dumps(content, indent=1), encoding="utf-8")

    def __str__(self) -> str:
        rows = [[str(cell) for cell in row] for row in (_HEAD, *self._sums())]
        return "\n".join([self._summary(), *aligned(rows, words=1)])

    def _summary(self) -> str:
        rate = self.rows / self.seconds if self.seconds else 0.0
        return (
            f"{self.name}: {self.rows:,} rows in {len(self.tasks)} tasks of {self.seconds:.1f} s "
            f"in all, {rate:,.0f} rows a second of a task"
        )

    def _sums(self) -> Iterator[Sequence[Any]]:
        whole = self.seconds or 1.0
        for phase, (seconds, size) in self.phases.items():
            megabytes = f"{size / 1e6:,.1f}" if size else ""
            yield PHASES[phase], f"{seconds:.2f}", f"{seconds / whole:.0%}", megabytes


_HEAD = ("phase", "seconds", "of the tasks", "MB")
