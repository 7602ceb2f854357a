"""Copies single files from and to the file systems that Spark reaches (hdfs://, s3a:// …)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import FileError, SparkError
from sparknet.predict.files import RemoteFile, local_path
from sparknet.spark.background_job import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
