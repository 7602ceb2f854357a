"""Files and snapshots on the file systems that Spark reaches (hdfs://, s3a:// …)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import FileError, SparkError
from sparknet.net.files import RemoteFile, local_path
from sparknet.net.scratch import scratch_folder
from sparknet.spark.cluster.background_job import is_classic
from sparknet.training.checkpoints.runs import FolderRuns, Runs, run_names
from sparknet.training.checkpoints.store import MANIFEST, ROUND, UNNAMED, Buffer, FolderStore, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def said_by_java(path: str) -> Iterator[None]:
    """Turns an error of the JVM into a FileError with the path."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        cause: Any = error.java_exception
        message = str(cause.getMessage() or cause.toString())
        raise FileError(path, message.removeprefix(f"{path}: ")) from error


def remote_file(url: str, session: SparkSession | None = None) -> RemoteFile:
    """Return a file on whatever file system Spark takes the path for."""
    session = session or _session(url)
    return _HadoopFile(url, session) if is_classic(session) else _ConnectedFile(url, session)


class _HadoopFile(RemoteFile):
    """Reached by Hadoop's classes, which a classic session has."""

    def __init__(self, url: str, session: SparkSession) -> None:
        self._url = url
        self._path = session._jvm.org.apache.hadoop.fs.Path
        with said_by_java(url):
            settings = session._jsparkSession.sessionState().newHadoopConf()
            self._system = self._path(url).getFileSystem(settings)

    def exists(self) -> bool:
        with said_by_java(self._url):
            return bool(self._system.exists(self._path(self._url)))

    def fetch(self, copy: Path) -> None:
        with said_by_java(self._url):
            local = self._path(copy.as_uri())
            self._system.copyToLocalFile(False, self._path(self._url), local, True)

    def put(self, copy: Path) -> None:
        done = self._path(self._url)
        with said_by_java(self._url):
            draft = self._path(done.getParent(), f".{done.getName()}.draft")
            self._system.copyFromLocalFile(False, True, self._path(copy.as_uri()), draft)
            self._system.delete(done, False)
            if not self._system.rename(draft, done):
                raise FileError(self._url, "cannot be given its name")


class _ConnectedFile(RemoteFile):
    """Reached through the server of Spark Connect, as its client has no Hadoop."""

    def __init__(self, url: str, session: SparkSession) -> None:
        self._url, self._session = url, session

    def exists(self) -> bool:
        from pyspark.errors import PySparkException

        try:
            files = self._session.read.format("binaryFile").load(self._url)
            return bool(files.select("path").head(1))
        except PySparkException:
            return False

    def fetch(self, copy: Path) -> None:
        from pyspark.errors import PySparkException

        pieces = (
            f"posexplode(transform(sequence(0L, greatest(length(content) - 1, 0) div {_PIECE}L), "
            f"i -> substring(content, CAST(i * {_PIECE} + 1 AS INT), {_PIECE}))) AS (number, piece)"
        )
        try:
            whole = self._session.read.format("binaryFile").load(self._url)
            with copy.open("wb") as out:
                for row in whole.selectExpr(pieces).orderBy("number").toLocalIterator():
                    out.write(row.piece)
        except PySparkException as error:
            raise FileError(self._url, _first_line(error)) from error

    def put(self, copy: Path) -> None:
        """Write a copy to where Spark can write.

        Spark Connect refuses to write to the server's own disk: this machine must be the server's.
        """
        from grpc import RpcError
        from pyspark.errors import PySparkException

        try:
            self._session.copyFromLocalToFs(str(copy), self._url)
        except (PySparkException, RpcError) as error:
            message = error.details() if isinstance(error, RpcError) else _first_line(error)
            here = local_path(self._url)
            if here is None or _REFUSED not in message:
                raise FileError(self._url, message) from error
            Path(here).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy, here)


_PIECE = 4 << 20
"""Bytes that a row carries: a message of Spark Connect holds 128 MiB."""
_REFUSED = "local file system"
"""What Spark Connect's refusal to write to its own disk says."""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _session(url: str) -> SparkSession:
    from sparknet.spark.cluster.session import running_session

    session = running_session()
    if session is None:
        raise SparkError(f"{url} is reached through Spark, and no session runs: start one first")
    return session


def open_runs(session: SparkSession, path: str | os.PathLike[str]) -> Runs:
    """Return the runs at a path: a folder of the driver's machine, or a URL."""
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
        self._done: set[int] = set()
        """What was committed here and not dropped."""

    def begin(self, round: int) -> None:
        self._staged.begin(round)

    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        self._staged.put(round, name, parts)

    def commit(self, round: int) -> None:
        self._staged.commit(round)
        manifest = Path(self._staged.path(round, MANIFEST))
        last = (
            manifest.rename(f"{self._staged.path(round)}.manifest") if manifest.exists() else None
        )
        try:
            self._move(Path(self._staged.path(round)), self._draft(round), self.path(round))
            if last is not None:
                name = f"{self._draft(round)}.manifest"
                self._move(last, name, self.path(round, MANIFEST))
        finally:
            if last is not None:
                last.unlink(missing_ok=True)
        self._done.add(round)

    def _move(self, local: Path, draft: str, done: str) -> None:
        """Copy a file or folder there, then give it its name, in place of an earlier one."""
        source, target = self._path(draft), self._path(done)
        with said_by_java(done):
            self._system.delete(source, True)
            self._system.copyFromLocalFile(True, True, self._path(local.as_uri()), source)
            if match := ROUND.fullmatch(done.rpartition("/")[2]):
                self.drop(int(match[1]))
            if not self._system.rename(source, target):
                raise FileError(done, "cannot be given its name")

    def rounds(self) -> list[int]:
        """Return the rounds that have a manifest: listings may lack those just written, and name
        others.

        Renaming a folder copies file by file on some systems, so that a part of one may lie there.
        """
        rounds = {int(match[1]) for match in map(ROUND.fullmatch, self._names()) if match}
        return sorted(self._done | set(filter(self._is_whole, rounds - self._done)))

    def _is_whole(self, round: int) -> bool:
        path = self.path(round, MANIFEST)
        with said_by_java(path):
            return bool(self._system.exists(self._path(path)))

    def get(self, round: int, name: str) -> Buffer:
        with scratch_folder("fetched") as folder:
            file = Path(folder, name)
            with said_by_java(self.path(round, name)):
                remote = self._path(self.path(round, name))
                self._system.copyToLocalFile(False, remote, self._path(file.as_uri()), True)
            return file.read_bytes()

    def drop(self, round: int) -> None:
        self._done.discard(round)
        done = self._path(self.path(round))
        dropped = self._path(f"{self._url}/.round-{round:08d}.dropped")
        with said_by_java(self.path(round)):
            self._system.delete(dropped, True)
            if self._system.exists(done):
                self._system.rename(done, dropped)
                self._system.delete(dropped, True)

    def clean(self) -> None:
        self._staged.clean()
        names = self._names()
        parts = {int(match[1]) for match in map(ROUND.fullmatch, names) if match} - self._done
        for round in parts:
            if not self._is_whole(round):
                self.drop(round)
        for name in filter(UNNAMED.fullmatch, names):
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
    """Return the names in a folder; none if it is no folder."""
    with said_by_java(url):
        if not system.exists(root):
            return []
        return [status.getPath().getName() for status in system.listStatus(root)]
