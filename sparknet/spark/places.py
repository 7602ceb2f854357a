"""Bad rows, told by their place: the partition, and the row's number in it, counted from 0.

One mechanism for all that reads rows: a batch of them goes through at once, and where that fails
each row goes through alone until the bad one is found.
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
"""What a row can be blamed for."""
_HIDE = "SPARK_HIDE_TRACEBACK"
"""PySpark's worker looks at this variable when it writes down the error that it ends with."""


def placed(
    work: Callable[[pa.RecordBatch], Made], rows: pa.RecordBatch, place: Callable[[int], str]
) -> Made:
    """What ``work`` makes of the rows; the error of the first bad one, with its ``place``."""
    try:
        return work(rows)
    except BAD as error:
        first = error
    for number in range(rows.num_rows):
        try:
            work(rows.slice(number, 1))
        except BAD as error:
            raise _at(error, place(number)) from None
    raise _at(first, f"{place(0)} and those after it") from None


def _at(error: SparkNetError, place: str) -> SparkNetError:
    found = bare(type(error), f"{error} ({place})")
    vars(found).update(vars(error))
    return found


@contextmanager
def in_one_line() -> Iterator[None]:
    """An error of ours leaves the worker as its sentence, without the traceback.

    The process ends with it: no other error's traceback is hidden.
    """
    try:
        yield
    except SparkNetError:
        os.environ[_HIDE] = "1"
        raise
