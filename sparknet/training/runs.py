"""Runs: a path for snapshots with a folder for each run.

A run prunes and resumes the snapshots of its own folder alone.  Snapshots at the path itself
belong to a run of an earlier version, which counts as the oldest.
"""

from __future__ import annotations

import os
import re
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

from sparknet.errors import FileError, SettingError, outside
from sparknet.net.scratch import PRIVATE_FOLDER
from sparknet.training.snapshot import Resumed, model, newest
from sparknet.training.store import ROUND, FolderStore, Store, named

StrPath = str | os.PathLike[str]

_RUN = re.compile(r"run-(\d{8}T\d{6}\.\d{6})Z-[0-9a-f]{4}")
_TIME = "%Y%m%dT%H%M%S.%f"


class ResumeWarning(UserWarning):
    """There was nothing to go on from."""


class Runs(ABC):
    """The runs whose snapshots lie at a path."""

    place: str
    """The path, for messages."""

    @abstractmethod
    def prepare(self) -> None:
        """Make the folder; FileError if it cannot be written."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of the runs, oldest first."""

    @abstractmethod
    def store(self, name: str) -> Store:
        """The snapshots of a run; an empty name means those at the path itself."""

    def newest(self) -> Store | None:
        """The newest run that has a snapshot."""
        for name in [*reversed(self.names()), ""]:
            store = self.store(name)
            if store.rounds():
                return store
        return None

    def begin(self) -> Store:
        """A new run, with the newest name; its first snapshot makes its folder."""
        now = datetime.now(timezone.utc).replace(tzinfo=None)
        for name in self.names()[-1:]:  # the clock may be that of another machine
            last = datetime.strptime(name.split("Z")[0], f"run-{_TIME}")
            now = max(now, last + timedelta(microseconds=1))
        return self.store(f"run-{now.strftime(_TIME)}Z-{secrets.token_hex(2)}")


class FolderRuns(Runs):
    """Runs in a folder that all workers reach."""

    def __init__(self, folder: StrPath) -> None:
        self.folder = Path(folder).absolute()
        self.place = str(self.folder)

    def prepare(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise FileError(self.folder, "is a file, where a folder for snapshots is needed")
        with named(self.folder):
            self.folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise FileError(self.folder, "cannot be written: snapshots go there")

    def names(self) -> Sequence[str]:
        if not self.folder.is_dir():
            return []
        return run_names(path.name for path in self.folder.iterdir())

    def store(self, name: str) -> FolderStore:
        return FolderStore(self.folder / name)


def find_resumed(runs: Runs | None, resume: bool) -> Resumed | None:
    """The snapshot to continue from: the newest one of the newest run, if ``resume``."""
    if not resume:
        return None
    if runs is None:
        raise SettingError("resume needs snapshots, the path where they are")
    found = Resumed.newest(runs.newest())
    if found is None:
        warnings.warn(
            f"resume found no snapshot in {runs.place}: the run starts anew",
            ResumeWarning,
            stacklevel=outside(),
        )
    return found


def run_names(names: Iterable[str]) -> list[str]:
    """The names that are names of runs, oldest first."""
    return sorted(filter(_RUN.fullmatch, names))


def save_weights(runs_at: Callable[[str], Runs], path: str, folder: StrPath) -> str:
    """Write the weights of a snapshot to a folder; returns the caffemodel's path.

    ``path`` is a snapshot, or the folder of a run or of several, whose newest snapshot is taken.
    """
    store, round = find(runs_at, path)
    made = Path(folder) / f"round-{round:08d}.caffemodel"
    model(store, round).save(made)
    return str(made)


def find(runs_at: Callable[[str], Runs], path: str) -> tuple[Store, int]:
    """The store and round of the snapshot that a path means."""
    head, _, tail = path.rstrip("/").rpartition("/")
    if match := ROUND.fullmatch(tail):
        return runs_at(head or ".").store(""), int(match[1])
    store = runs_at(path).newest()
    round = None if store is None else newest(store)
    if store is None or round is None:
        raise FileError(path, "holds no snapshot")
    return store, round
