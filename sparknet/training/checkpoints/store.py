"""Store: a run's snapshots, one folder per round, and the file of each worker in them."""

from __future__ import annotations

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.native import NDArray
from sparknet.net.scratch import PRIVATE_FOLDER, private

Buffer = bytes | memoryview

MANIFEST = "manifest.json"
"""The file that is written last: what has none is no snapshot."""
ROUND = re.compile(r"round-(\d{8,})")
UNNAMED = re.compile(r"\.round-(\d{8,})\.(?:draft|dropped)(?:\.manifest)?")
"""What is not a snapshot yet, or any more."""


class Store(ABC):
    """Files by round and name.  Drafts are written by all workers; worker 0 commits them."""

    @abstractmethod
    def begin(self, round: int) -> None:
        """Start a draft, in place of an earlier one of the same round.  Worker 0."""

    @abstractmethod
    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        """Write a file of the draft, through to the disk.  Any worker."""

    @abstractmethod
    def commit(self, round: int) -> None:
        """Make the draft the round's snapshot, atomically.  Worker 0."""

    @abstractmethod
    def rounds(self) -> Sequence[int]:
        """Return the rounds that have a snapshot, oldest first."""

    @abstractmethod
    def get(self, round: int, name: str) -> Buffer:
        """Return a file of a snapshot."""

    @abstractmethod
    def drop(self, round: int) -> None:
        """Remove a snapshot: it loses its name first, so that nobody ever reads a part of it."""

    @abstractmethod
    def clean(self) -> None:
        """Remove drafts that nobody will complete, and what is left of dropped snapshots."""

    @abstractmethod
    def path(self, round: int, name: str = "") -> str:
        """Return the path of a snapshot, or of a file of it, for messages."""

    @property
    def place(self) -> str:
        """The run's path, for messages."""
        return self.path(0).rpartition("/")[0]


class FolderStore(Store):
    """Snapshots in a folder that all workers reach; nobody but this user may read them."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()

    def begin(self, round: int) -> None:
        draft = self._draft(round)
        shutil.rmtree(draft, ignore_errors=True)
        with naming(draft):
            if not self.folder.exists():
                self.folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            draft.mkdir(PRIVATE_FOLDER)

    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        path = self._draft(round) / name
        with naming(path), open(path, "wb", opener=private) as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())

    def commit(self, round: int) -> None:
        done = Path(self.path(round))
        with naming(done):
            _sync(self._draft(round))
            self.drop(round)
            self._draft(round).rename(done)
            _sync(self.folder)

    def rounds(self) -> Sequence[int]:
        return sorted(number for _, number in self._folders(ROUND))

    def get(self, round: int, name: str) -> Buffer:
        path = Path(self.path(round, name))
        with naming(path):
            return path.read_bytes()

    def drop(self, round: int) -> None:
        dropped = self.folder / f".round-{round:08d}.dropped"
        shutil.rmtree(dropped, ignore_errors=True)
        with suppress(OSError):  # it is no more, or stays
            Path(self.path(round)).rename(dropped)
        shutil.rmtree(dropped, ignore_errors=True)

    def clean(self) -> None:
        for path, _ in self._folders(UNNAMED):
            shutil.rmtree(path, ignore_errors=True)

    def path(self, round: int, name: str = "") -> str:
        folder = self.folder / f"round-{round:08d}"
        return str(folder / name if name else folder)

    def _draft(self, round: int) -> Path:
        return self.folder / f".round-{round:08d}.draft"

    def _folders(self, pattern: re.Pattern[str]) -> Iterator[tuple[Path, int]]:
        if not self.folder.is_dir():
            return
        for path in self.folder.iterdir():
            match = pattern.fullmatch(path.name)
            if match:
                yield path, int(match[1])


def _sync(folder: Path) -> None:
    """Flush a folder to the disk, so that names in it outlast a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an OSError into a FileError with the path."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        raise FileError(path, error.strerror or str(error)) from error


Json = dict[str, Any]
Values = Any
"""An array of float32 out of a file."""

FIRST, MAGIC = b"SNSTATE1", b"SNSTATE2"
FRONT = len(MAGIC) + 8
ALIGNED = 64
DIGEST = 32
FLOAT = np.dtype("<f4")


@dataclass(frozen=True)
class StateFile:
    """What a file holds."""

    numbers: Json = field(default_factory=dict)
    arrays: dict[str, str] = field(default_factory=dict)
    """The arrays by name, as digests; as names in a file of an earlier version."""
    stored: dict[str, Values] = field(default_factory=dict)
    """Arrays by digest."""


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def digest_of(parts: Sequence[Any]) -> str:
    total = blake2b(digest_size=DIGEST)
    for part in parts:
        total.update(part)
    return total.hexdigest()


def floats(array: Any) -> memoryview:
    """Return the bytes of an array as they are stored."""
    values = np.asarray(array).astype(FLOAT, copy=False)
    return values.data.cast("B") if values.size else memoryview(b"")


def packed(
    numbers: Json, arrays: Mapping[str, str], stored: Mapping[str, NDArray]
) -> tuple[list[Buffer], str]:
    """Return a file's parts, and its digest: that of the front, which names those of the arrays."""
    listed = [[digest, array.size] for digest, array in stored.items()]
    text = canonical({"numbers": numbers, "arrays": dict(arrays), "stored": listed})
    text += b" " * (-(FRONT + len(text)) % ALIGNED)
    front = MAGIC + len(text).to_bytes(8, "little") + text
    return [front, *map(floats, stored.values())], digest_of([front])


def parsed(path: str, data: memoryview, digest: Any) -> StateFile | None:
    """Return a file's contents; None if it was changed, FileError if it never was such a file."""
    begins = bytes(data[: len(MAGIC)])
    end = FRONT + int.from_bytes(data[len(MAGIC) : FRONT], "little")
    of_first = begins == FIRST and digest_of([data]) == digest
    if not of_first and (end > len(data) or digest_of([data[:end]]) != digest):
        return None
    try:
        header = json.loads(bytes(data[FRONT:end]))
        if of_first:
            stored = _slices(data, end, header["arrays"])
            return StateFile(dict(header["numbers"]), {name: name for name in stored}, stored)
        stored = _slices(data, end, header["stored"])
        if begins != MAGIC:
            raise ValueError("it begins otherwise")
        file = StateFile(dict(header["numbers"]), dict(header["arrays"]), stored)
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise FileError(path, f"is no worker's state: {error}") from error
    whole = all(digest_of([floats(values)]) == name for name, values in stored.items())
    return file if whole else None


def _slices(data: memoryview, begin: int, listed: Any) -> dict[str, Values]:
    arrays = {}
    for name, size in listed:
        end = begin + FLOAT.itemsize * size
        arrays[str(name)] = np.frombuffer(data[begin:end], FLOAT, count=size)
        begin = end
    return arrays
