"""Sends files to executors, which fetch them once a session."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sparknet.errors import SparkError
from sparknet.net.scratch import scratch_folder
from sparknet.spark.background_job import is_classic
from sparknet.spark.by_value import by_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_sent: dict[str, WeakSet[SparkSession]] = {}
"""File → the sessions that have it."""


def send(session: SparkSession, name: str, write: Callable[[Path], object]) -> None:
    """Offer tasks a file as ``SparkFiles.get(name)``; ``write`` makes it if it does not exist.

    The name must depend on the contents.  The file stays while its sessions run: DataFrames are
    computed late and repeatedly, and a Spark in this process reads the file each time.
    """
    if session in _sent.get(name, ()):
        return
    _delete_stopped()
    path = Path(_folder().name) / name
    if not path.exists():
        write(path)
    if is_classic(session):
        session.sparkContext.addFile(str(path))  # addArtifacts, too, but only since Spark 4
    else:
        session.addArtifacts(str(path), file=True)
    _sent.setdefault(name, WeakSet()).add(session)


def _delete_stopped() -> None:
    """Delete the files of sessions that have stopped, unless another one has them."""
    for name, sessions in list(_sent.items()):
        if not any(map(_runs, sessions)):
            del _sent[name]
            Path(_folder().name, name).unlink(missing_ok=True)


def _runs(session: SparkSession) -> bool:
    if is_classic(session):
        return session.sparkContext._jsc is not None
    return not getattr(session, "is_stopped", False)


def withdraw(session: SparkSession, name: str) -> None:
    """Stop offering a file, and delete the driver's copy and those on the executors.

    DataFrames that need it can no longer be computed; `send` offers it again.
    """
    if session not in _sent.get(name, ()):
        return
    if is_classic(session):
        context = session.sparkContext
        by_job = context._jsc.sc().addedFiles().valuesIterator()  # Spark has no removeFile
        while by_job.hasNext():
            files = by_job.next()
            for url in _strings(files.keysIterator()):
                if url.endswith(f"/{name}"):
                    files.remove(url)
        rows = session.range(0, context.defaultParallelism, 1, context.defaultParallelism)
        rows.mapInArrow(by_value(partial(_removed, name=name)), "id long").collect()
    _sent[name].discard(session)
    _delete_stopped()


def _strings(names: Any) -> list[str]:
    found = []
    while names.hasNext():
        found.append(str(names.next()))
    return found


def _removed(batches: Iterable[Any], name: str) -> Iterator[Any]:
    from pyspark import SparkFiles

    for batch in batches:
        Path(SparkFiles.get(name)).unlink(missing_ok=True)
        yield batch


def received(name: str) -> Path:
    """In a task: the file of this name that was sent."""
    from pyspark import SparkFiles

    path = Path(SparkFiles.get(name))
    if not path.exists():
        raise SparkError(
            f"this task was given no file {name} of the model, as the tasks of streams are given "
            "none under Spark Connect: predict streams in a classic session"
        )
    return path


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return scratch_folder()
