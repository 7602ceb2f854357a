"""Runs: what a path for snapshots holds, a folder for each run.

A run knows its snapshots by their folder: it prunes those, and recovers from those.  Snapshots
that lie at the path itself are of a run that an earlier version made, older than all others.
"""

from __future__ import annotations

import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sparknet.dist.snapshot import Resumed, model, newest
from sparknet.dist.store import ROUND, FolderStore, Store, named
from sparknet.errors import FileError, SettingError

StrPath = str | os.PathLike[str]

_RUN = re.compile(r"run-(\d{8}T\d{6}\.\d{6})Z-[0-9a-f]{4}")
_TIME = "%Y%m%dT%H%M%S.%f"


class Runs(ABC):
    """The runs whose snapshots lie at a path."""

    place: str
    """How messages call the path."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the folder; FileError where nothing could be written, before there is anything."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Those of the runs, oldest first."""

    @abstractmethod
    def store(self, name: str) -> Store:
        """The snapshots of a run; those at the path itself where the name is empty."""

    def newest(self) -> Store | None:
        """The run that was started last, of those that have a snapshot."""
        for name in [*reversed(self.names()), ""]:
            store = self.store(name)
            if store.rounds():
                return store
        return None

    def begin(self) -> Store:
        """A new run, the newest of all; its folder is made with its first snapshot."""
        now = datetime.now(timezone.utc).replace(tzinfo=None)
        for name in self.names()[-1:]:  # clocks differ from machine to machine
            last = datetime.strptime(name.split("Z")[0], f"run-{_TIME}")
            now = max(now, last + timedelta(microseconds=1))
        return self.store(f"run-{now.strftime(_TIME)}Z-{secrets.token_hex(2)}")


class FolderRuns(Runs):
    """In a folder that all workers reach."""

    def __init__(self, folder: StrPath) -> None:
        self.folder = Path(folder).absolute()
        self.place = str(self.folder)

    def prepare(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(self.folder, "is a file, where a folder for snapshots is needed")
        with named(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise FileError(self.folder, "cannot be written: snapshots go there")

    def names(self) -> Sequence[str]:
        if not self.folder.is_dir():
            return []
        return run_names(path.name for path in self.folder.iterdir())

    def store(self, name: str) -> FolderStore:
        return FolderStore(self.folder / name)


def find_resumed(runs: Runs | None, resume: bool) -> Resumed | None:
    """What to go on from: the newest snapshot of the newest run."""
    if not resume:
        return None
    if runs is None:
        raise SettingError("resume needs snapshots, the path where they are")
    return Resumed.newest(runs.newest())


def run_names(names: Iterable[str]) -> list[str]:
    """Those that are of runs, oldest first."""
    return sorted(filter(_RUN.fullmatch, names))


def save_weights(runs_at: Callable[[str], Runs], path: str, folder: StrPath) -> str:
    """Write the weights of a snapshot to a folder; the caffemodel's path.

    ``path`` names a snapshot, or the folder of a run or of several: then it is the newest one.
    """
    store, round = find(runs_at, path)
    made = Path(folder) / f"round-{round:08d}.caffemodel"
    model(store, round).save(made)
    return str(made)


def find(runs_at: Callable[[str], Runs], path: str) -> tuple[Store, int]:
    """The snapshot that a path means."""
    head, _, tail = path.rstrip("/").rpartition("/")
    if match := ROUND.fullmatch(tail):
        return runs_at(head or ".").store(""), int(match[1])
    store = runs_at(path).newest()
    round = None if store is None else newest(store)
    if store is None or round is None:
        raise FileError(path, "holds no snapshot")
    return store, round
