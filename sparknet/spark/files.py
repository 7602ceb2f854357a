"""Sends files to executors, which fetch them once a session."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sparknet.errors import SparkError
from sparknet.net.scratch import scratch_folder
from sparknet.spark.background_job import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_sent: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def send(session: SparkSession, name: str, write: Callable[[Path], object]) -> None:
    """Offer tasks a file as ``SparkFiles.get(name)``; ``write`` makes it if it does not exist.

    The name must depend on the contents.  The file stays until the process ends: DataFrames are
    computed late and repeatedly, and a Spark in this process reads the file each time.
    """
    sent = _sent.setdefault(session, set())
    if name in sent:
        return
    path = Path(_folder().name) / name
    if not path.exists():
        write(path)
    if is_classic(session):
        session.sparkContext.addFile(str(path))  # addArtifacts, too, but only since Spark 4
    else:
        session.addArtifacts(str(path), file=True)
    sent.add(name)


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
