"""Files of this machine, and of the file systems that Spark reaches (hdfs://, s3a:// …)."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from sparknet.atomic_files import atomic_file
from sparknet.errors import FileError, SparkNetError, bare
from sparknet.net.scratch import scratch_folder

StrPath = str | os.PathLike[str]

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^\s{}]*")
_REMOTE = "sparknet.spark.filesystem.remote"
"""The module that opens URLs; it is imported for the first one, as it needs pyspark."""


def local_path(path: StrPath) -> str | None:
    """Return the path on this machine that a path or a file: URL names; None for other URLs."""
    text = os.fspath(path)
    parsed = urlparse(text)
    if parsed.scheme == "file" and parsed.netloc in ("", "localhost"):
        return unquote(parsed.path)
    return text if len(parsed.scheme) < 2 else None  # no scheme, or a drive letter


@contextmanager
def fetched(source: Any, session: Any = None) -> Iterator[Any]:
    """Yield the source of a net or of weights; a URL is replaced by a temporary local copy."""
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
    """Return whether there is such a file, wherever Spark can read."""
    here = local_path(path)
    if here is None:
        return remote_file(os.fspath(path)).exists()
    return os.path.isfile(here)  # noqa: PTH113 - of a name that is too long there is none


@contextmanager
def output_file(path: StrPath, session: Any = None) -> Iterator[Path]:
    """Yield a local draft of a file, which then appears at ``path`` whole or not at all."""
    here = local_path(path)
    if here is not None:
        try:
            Path(here).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(path, f"its folder cannot be made: {error.strerror}") from error
        with atomic_file(here) as draft:
            yield draft
        return
    remote = remote_file(os.fspath(path), session)
    with scratch_folder("staging") as folder:
        copy = Path(folder, Path(path).name)
        yield copy
        remote.put(copy)


class RemoteFile(ABC):
    """A file where Spark reads and writes."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def fetch(self, copy: Path) -> None:
        """Copy the file to a path of this machine."""

    @abstractmethod
    def put(self, copy: Path) -> None:
        """Make the file, or replace it, from a file of this machine."""


def remote_file(url: str, session: Any = None) -> RemoteFile:
    """Return a file where Spark finds it, through ``session`` or the one that runs."""
    file: RemoteFile = import_module(_REMOTE).remote_file(url, session)
    return file


def with_path(error: SparkNetError, copy: str, url: str) -> SparkNetError:
    """Return the error of reading a copy, with the original's name."""
    error_here = bare(type(error), str(error).replace(copy, url))
    vars(error_here).update(vars(error))
    if hasattr(error_here, "path"):
        error_here.path = url
    return error_here
