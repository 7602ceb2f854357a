"""Snapshots on any file system that Spark can write (HDFS, S3 …), by Hadoop's classes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import FileError, SparkError
from sparknet.net.scratch import scratch_folder
from sparknet.spark.background_job import is_classic
from sparknet.spark.remote import local_path, said_by_java
from sparknet.training.runs import FolderRuns, Runs, run_names
from sparknet.training.store import ROUND, UNNAMED, Buffer, FolderStore, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_runs(session: SparkSession, path: str | os.PathLike[str]) -> Runs:
    """The runs at a path: a folder of the driver's machine, or a URL."""
    url = os.fspath(path)
    if (here := local_path(path)) is not None:
        return FolderRuns(here)
    if not is_classic(session):
        raise SparkError(
            f"snapshots cannot lie at {url} under Spark Connect, where the driver has no Hadoop: "
            "name a folder of this machine"
        )
    return HadoopRuns(session, url)


class HadoopRuns(Runs):
    """Runs on a file system that a URL names."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self.place = url.rstrip("/")
        self._path = session._jvm.org.apache.hadoop.fs.Path
        with said_by_java(self.place):
            settings = session._jsparkSession.sessionState().newHadoopConf()
            self._system = self._path(self.place).getFileSystem(settings)

    def prepare(self) -> None:
        with said_by_java(self.place):
            self._system.mkdirs(self._path(self.place))

    def names(self) -> list[str]:
        return run_names(listed(self._system, self._path(self.place), self.place))

    def store(self, name: str) -> HadoopStore:
        return HadoopStore(self._system, self._path, f"{self.place}/{name}".rstrip("/"))


class HadoopStore(Store):
    """Stages files in a local folder; the JVM copies whole snapshots at a time.

    ``system`` is a Hadoop file system, ``path`` its class of paths.
    """

    def __init__(self, system: Any, path: Any, url: str) -> None:
        self._system, self._path, self._url = system, path, url
        self._folder = scratch_folder("staging")
        self._staged = FolderStore(self._folder.name)

    def begin(self, round: int) -> None:
        self._staged.begin(round)

    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        self._staged.put(round, name, parts)

    def commit(self, round: int) -> None:
        self._staged.commit(round)
        draft, done = self._path(self._draft(round)), self._path(self.path(round))
        with said_by_java(self.path(round)):
            self._system.delete(draft, True)
            local = self._path(Path(self._staged.path(round)).as_uri())
            self._system.copyFromLocalFile(True, True, local, draft)
            self.drop(round)
            if not self._system.rename(draft, done):
                raise FileError(self.path(round), "cannot be given its name")

    def rounds(self) -> list[int]:
        return sorted(int(match[1]) for match in map(ROUND.fullmatch, self._names()) if match)

    def get(self, round: int, name: str) -> Buffer:
        with scratch_folder("fetched") as folder:
            file = Path(folder, name)
            with said_by_java(self.path(round, name)):
                remote = self._path(self.path(round, name))
                self._system.copyToLocalFile(False, remote, self._path(file.as_uri()), True)
            return file.read_bytes()

    def drop(self, round: int) -> None:
        done = self._path(self.path(round))
        dropped = self._path(f"{self._url}/.round-{round:08d}.dropped")
        with said_by_java(self.path(round)):
            self._system.delete(dropped, True)
            if self._system.exists(done):
                self._system.rename(done, dropped)
                self._system.delete(dropped, True)

    def clean(self) -> None:
        self._staged.clean()
        for name in filter(UNNAMED.fullmatch, self._names()):
            with said_by_java(f"{self._url}/{name}"):
                self._system.delete(self._path(f"{self._url}/{name}"), True)

    def path(self, round: int, name: str = "") -> str:
        folder = f"{self._url}/round-{round:08d}"
        return f"{folder}/{name}" if name else folder

    def _draft(self, round: int) -> str:
        return f"{self._url}/.round-{round:08d}.draft"

    def _names(self) -> list[str]:
        return listed(self._system, self._path(self._url), self._url)


def listed(system: Any, root: Any, url: str) -> list[str]:
    """The names in a folder; none if it is no folder."""
    with said_by_java(url):
        if not system.exists(root):
            return []
        return [status.getPath().getName() for status in system.listStatus(root)]
