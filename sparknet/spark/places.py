"""Reports bad rows by their place: the partition, and the row's number in it, counted from 0.

All code that reads rows uses this: it converts a batch at once, and if that fails, row by row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sparknet.errors import DataError, FileError, SparkError, SparkNetError, bare

BAD = (DataError, FileError, SparkError)
"""Errors that a bad row can cause."""
_HIDE = "SPARK_HIDE_TRACEBACK"
"""PySpark's worker reads this variable when it reports the error that it ends with."""


def at_place(error: SparkNetError, place: str) -> SparkNetError:
    """The error with a place behind its sentence."""
    found = bare(type(error), f"{error} ({place})")
    vars(found).update(vars(error))
    return found


@contextmanager
def in_one_line() -> Iterator[None]:
    """Let an error of sparknet leave the worker without its traceback.

    The process ends with that error, so that no other traceback is hidden.
    """
    try:
        yield
    except SparkNetError:
        os.environ[_HIDE] = "1"
        raise
