"""Reports bad rows by their place: the partition, and the row's number in it, counted from 0.

All code that reads rows uses this: it converts a batch at once, and if that fails, row by row until
it finds the bad one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from sparknet.errors import DataError, FileError, SparkError, SparkNetError, bare

if TYPE_CHECKING:
    import pyarrow as pa

Made = TypeVar("Made")

BAD = (DataError, FileError, SparkError)
"""Errors that a bad row can cause."""
_HIDE = "SPARK_HIDE_TRACEBACK"
"""PySpark's worker reads this variable when it reports the error that it ends with."""


def placed(
    work: Callable[[pa.RecordBatch], Made], rows: pa.RecordBatch, place: Callable[[int], str]
) -> Made:
    """The result of ``work`` for the rows; raises the first bad row's error with its ``place``."""
    try:
        return work(rows)
    except BAD as error:
        first = error
    for number in range(rows.num_rows):
        try:
            work(rows.slice(number, 1))
        except BAD as error:
            raise at_place(error, place(number)) from None
    raise at_place(first, f"{place(0)} and those after it") from None


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
