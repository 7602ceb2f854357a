"""Copies single files from and to the file systems that Spark reaches (hdfs://, s3a:// …)."""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from sparknet.errors import FileError, SparkError, SparkNetError, bare
from sparknet.net.model_folder import written_here
from sparknet.net.scratch import scratch_folder
from sparknet.spark.background_job import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

StrPath = str | os.PathLike[str]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^\s{}]*")


def local_path(path: StrPath) -> str | None:
    """The path on this machine that a path or a file: URL names; None if it lies elsewhere."""
    text = os.fspath(path)
    parsed = urlparse(text)
    if parsed.scheme == "file" and parsed.netloc in ("", "localhost"):
        return unquote(parsed.path)
    return text if len(parsed.scheme) < 2 else None  # no scheme, or a drive letter


@contextmanager
def fetched(source: Any, session: SparkSession | None = None) -> Iterator[Any]:
    """The source of a net or of weights; a URL is replaced by a temporary local copy."""
    if not isinstance(source, (str, os.PathLike)) or not _URL.fullmatch(os.fspath(source)):
        yield source
        return
    url = os.fspath(source)
    if (path := local_path(url)) is not None:
        yield path
        return
    remote = remote_file(url, session)
    with scratch_folder("fetched") as folder:
        copy = Path(folder, Path(url).name)
        remote.fetch(copy)
        try:
            yield str(copy)
        except SparkNetError as error:
            raise with_path(error, str(copy), url) from error


def exists(path: StrPath) -> bool:
    """Whether there is such a file, wherever Spark can read."""
    here = local_path(path)
    return Path(here).is_file() if here is not None else remote_file(os.fspath(path)).exists()


@contextmanager
def written(path: StrPath, session: SparkSession | None = None) -> Iterator[Path]:
    """A local path to write the file of ``path`` to; it then appears there whole or not at all."""
    here = local_path(path)
    if here is not None:
        with written_here(here) as draft:
            yield draft
        return
    remote = remote_file(os.fspath(path), session)
    with scratch_folder("staging") as folder:
        copy = Path(folder, Path(path).name)
        yield copy
        remote.put(copy)


@contextmanager
def said_by_java(path: str) -> Iterator[None]:
    """Turns an error of the JVM into a FileError with the path."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        said: Any = error.java_exception
        message = str(said.getMessage() or said.toString())
        raise FileError(path, message.removeprefix(f"{path}: ")) from error


class RemoteFile(ABC):
    """A file where Spark reads and writes."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def fetch(self, copy: Path) -> None:
        """Copy it to a path of this machine."""

    @abstractmethod
    def put(self, copy: Path) -> None:
        """Make it, or replace it, from a file of this machine."""


def remote_file(url: str, session: SparkSession | None = None) -> RemoteFile:
    """A file on whatever file system Spark takes the path for."""
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
            found = self._session.read.format("binaryFile").load(self._url)
            return bool(found.select("path").head(1))
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
        """Where Spark's file system is the server's own disk, this machine must be the server's:
        Spark Connect refuses to write there."""
        from grpc import RpcError
        from pyspark.errors import PySparkException

        try:
            self._session.copyFromLocalToFs(str(copy), self._url)
        except (PySparkException, RpcError) as error:
            said = error.details() if isinstance(error, RpcError) else _first_line(error)
            here = local_path(self._url)
            if here is None or _REFUSED not in said:
                raise FileError(self._url, said) from error
            Path(here).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(copy, here)


_PIECE = 4 << 20
"""Bytes that a row carries: a message of Spark Connect holds 128 MiB."""
_REFUSED = "local file system"
"""What Spark Connect's refusal to write to its own disk says."""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _session(url: str) -> SparkSession:
    from sparknet.spark.session import running_session

    session = running_session()
    if session is None:
        raise SparkError(f"{url} is reached through Spark, and no session runs: start one first")
    return session


def with_path(error: SparkNetError, copy: str, url: str) -> SparkNetError:
    """The error of reading a copy, with the original's name."""
    found = bare(type(error), str(error).replace(copy, url))
    vars(found).update(vars(error))
    if hasattr(found, "path"):
        found.path = url
    return found
