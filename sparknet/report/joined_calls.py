"""JoinedCalls: dynamic batching, so that requests that wait for each other are one batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Columns = Mapping[str, Array]
_QUICK = 1e-3
"""Seconds: calls below this do not wait for each other, as a net's new batch size costs more."""


class _Call:
    """The columns of one call, and its result or error once it has one."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.rows = len(next(iter(columns.values())))
        self.kind = tuple((name, one.dtype.str, one.shape[1:]) for name, one in columns.items())
        self.result: dict[str, Any] | Exception | None = None


class JoinedCalls:
    """A function of rows in columns of arrays that threads call; one call computes at a time.

    The calls that wait meanwhile are the next batch.  So a lone caller waits for nobody.  Once a
    call alone took less than a millisecond, calls take turns, and none shares a batch.
    """

    def __init__(self, function: Callable[[Columns], dict[str, Any]], max_rows: int) -> None:
        """``max_rows`` bounds the rows of a batch that several calls share."""
        self._function, self._max_rows = function, max_rows
        self._waiting: deque[_Call] = deque()
        self._turn = Lock()
        self._is_quick = False

    def __call__(self, columns: Columns) -> dict[str, Any]:
        if self._is_quick:
            return self._function(columns)
        call = _Call(columns)
        if self._turn.acquire(blocking=False):
            try:
                begin = perf_counter()
                result = self._function(columns)
                self._is_quick = call.rows > 0 and perf_counter() - begin < _QUICK
                return result
            finally:
                self._turn.release()
        self._waiting.append(call)
        with self._turn:
            while call.result is None:
                self._run(self._next())
        if isinstance(call.result, Exception):
            raise call.result
        return call.result

    def _next(self) -> list[_Call]:
        """Return the calls that waited longest and have the same columns."""
        calls = [self._waiting.popleft()]
        rows = calls[0].rows
        while self._waiting and self._waiting[0].kind == calls[0].kind:
            rows += self._waiting[0].rows
            if rows > self._max_rows:
                break
            calls.append(self._waiting.popleft())
        return calls

    def _run(self, calls: Sequence[_Call]) -> None:
        try:
            if len(calls) == 1:
                calls[0].result = self._function(calls[0].columns)
                return
            joined = {
                name: np.concatenate([call.columns[name] for call in calls])
                for name in calls[0].columns
            }
            results = self._function(joined)
            end = 0
            for call in calls:
                begin, end = end, end + call.rows
                call.result = {name: values[begin:end] for name, values in results.items()}
        except Exception as error:
            if len(calls) == 1:
                calls[0].result = error
                return
            for call in calls:  # the error is of one of them
                self._run([call])
