"""JsonLines: writes each event as a line of JSON."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from sparknet.errors import FileError
from sparknet.summary.events import Event


class JsonLines:
    """A listener that writes to a file or a stream.

    Lines are appended to a file, so that a resumed training has one log.  Each line is written
    completely before the listener returns, and has a ``time``, in seconds since 1970.
    """

    def __init__(
        self, out: str | os.PathLike[str] | TextIO, clock: Callable[[], float] = time.time
    ) -> None:
        self._clock = clock
        self._own = isinstance(out, (str, os.PathLike))
        self._stream = _opened(out) if isinstance(out, (str, os.PathLike)) else out

    def __call__(self, event: Event) -> None:
        self._stream.write(as_json({"time": round(self._clock(), 3)} | dict(event)) + "\n")
        self._stream.flush()

    def close(self) -> None:
        if self._own:
            self._stream.close()


def _opened(path: str | os.PathLike[str]) -> TextIO:
    try:
        return Path(path).open("a", encoding="utf-8")
    except OSError as error:
        raise FileError(os.fspath(path), f"cannot be written: {error.strerror}") from error


def as_json(value: Any) -> str:
    """A line of strict JSON, with numpy's numbers as numbers and null for NaN and infinity."""
    return json.dumps(_plain(value), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)
