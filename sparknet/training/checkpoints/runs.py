"""Folders of runs with their snapshots, and what a run must share with one to resume it."""

from __future__ import annotations

import os
import re
import secrets
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, SettingError, outside
from sparknet.layers import LAYERS
from sparknet.loaders.records import Records
from sparknet.net import Net
from sparknet.net.description import LEFT_TO_THE_CALLER
from sparknet.net.scratch import PRIVATE_FOLDER
from sparknet.proto.solver import TO_THE_END
from sparknet.training.checkpoints.snapshot import Resumed, model, newest
from sparknet.training.checkpoints.store import ROUND, FolderStore, Store, naming
from sparknet.training.training_net import settings

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
        """Return the names of the runs, oldest first."""

    @abstractmethod
    def store(self, name: str) -> Store:
        """Return the snapshots of a run; an empty name means those at the path itself."""

    def newest(self) -> Store | None:
        """Return the newest run that has a snapshot."""
        for name in [*reversed(self.names()), ""]:
            store = self.store(name)
            if store.rounds():
                return store
        return None

    def begin(self) -> Store:
        """Return a new run, with the newest name; its first snapshot makes its folder."""
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
        with naming(self.folder):
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
    """Return the snapshot to continue from: the newest one of the newest run, if ``resume``."""
    if not resume:
        return None
    if runs is None:
        raise SettingError("resume needs snapshots, the path where they are")
    run = Resumed.newest(runs.newest())
    if run is None:
        warnings.warn(
            f"resume found no snapshot in {runs.place}: the run starts anew",
            ResumeWarning,
            stacklevel=outside(),
        )
    return run


def run_names(names: Iterable[str]) -> list[str]:
    """Return the names that are names of runs, oldest first."""
    return sorted(filter(_RUN.fullmatch, names))


def save_weights(runs_at: Callable[[str], Runs], path: str, folder: StrPath) -> str:
    """Write the weights of a snapshot to a folder; returns the caffemodel's path.

    ``path`` is a snapshot, or the folder of a run or of several, whose newest snapshot is taken.
    """
    store, round = find(runs_at, path)
    file = Path(folder) / f"round-{round:08d}.caffemodel"
    model(store, round).save(file)
    return str(file)


def find(runs_at: Callable[[str], Runs], path: str) -> tuple[Store, int]:
    """Return the store and round of the snapshot that a path means."""
    head, _, tail = path.rstrip("/").rpartition("/")
    if match := ROUND.fullmatch(tail):
        return runs_at(head or ".").store(""), int(match[1])
    store = runs_at(path).newest()
    round = None if store is None else newest(store)
    if store is None or round is None:
        raise FileError(path, "holds no snapshot")
    return store, round


Json = dict[str, Any]

LOOKED_AT = 64
"""The number of records in the check sum of a data set that must be read for it."""

_FREE = (
    *LEFT_TO_THE_CALLER,
    "test_compute_loss",
    "average_loss",
    "snapshot_prefix",
    "snapshot_diff",
    "snapshot_format",
    "solver_mode",
    "device_id",
    "further_device_id",
    "richness",
    "solver_data_type",
    "store_blobs_in_old_format",
    "test_offset",
    "max_iter",
)
"""Settings of a solver that do not change how it updates weights."""
_PLACES = ("source", "root_folder", "mean_file")


def identity(net: Net) -> Json:
    """Return what is known of a net before training begins."""
    how = net.preprocessing
    return {
        **({} if how is None else {"preprocessing": how.to_json()}),
        "net": _digest_of(net),
        "solver": _solver(settings(net)),
    }


def check_sum(batch: Mapping[str, Any]) -> int:
    """Return a check sum of records, whatever their order."""
    rows = [np.ascontiguousarray(batch[name]) for name in sorted(batch)]
    flat = [column.reshape(len(column), -1).view(np.uint8) for column in rows if column.size]
    total = 0
    for record in zip(*flat, strict=True):
        check = 0
        for part in record:
            check = zlib.crc32(part, check)
        total += check
    return total


def sampled(records: Records) -> int:
    """Return the check sum of evenly spaced records."""
    count = len(records)
    places = np.linspace(0, count - 1, min(count, LOOKED_AT)).astype(np.int64)
    return check_sum(records.take(places)) if count else 0


def _solver(solver: Any) -> Json:
    """Return all settings that change the weights, defaults included."""
    free = set(_FREE)
    policies = (solver.lr_policy, solver.momentum_policy, solver.weight_decay_policy)
    if not set(TO_THE_END).isdisjoint(policies):  # what they give depends on max_iter
        free.remove("max_iter")
    names = (field.name for field in solver.DESCRIPTOR.fields)
    return {name: _plain(getattr(solver, name)) for name in names if name not in free}


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, str)):
        return value
    return float(f"{value:.7g}") if isinstance(value, float) else [_plain(one) for one in value]


def _digest_of(net: Net) -> str:
    """Return a digest of the layers; files that they name count by content, not by path."""
    message = type(net.described)()
    message.CopyFrom(net.described)
    total = blake2b(digest_size=16)
    for layer in message.layer:
        for field, value in layer.ListFields():
            for name in _PLACES if field.name.endswith("_param") else ():
                if getattr(value, name, "") and field.name != "python_param":
                    if name == "mean_file" or not LAYERS[layer.type].holds_records:
                        total.update(_contents(getattr(value, name)))
                    value.ClearField(name)
    total.update(message.SerializeToString(deterministic=True))
    return total.hexdigest()


def _contents(path: str) -> bytes:
    return Path(path).read_bytes() if Path(path).is_file() else b""
