"""plot: loss, accuracy and learning rate over the iterations, as an image."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sparknet.errors import DataError, FileError
from sparknet.summary.curves import Curves
from sparknet.summary.events import Event
from sparknet.summary.history import History


def plot(source: History | Iterable[Event] | str | os.PathLike[str], out: str | Path) -> None:
    """Draw a history, or its JSON lines, to a file named .svg, .png or .pdf.

    SVG needs no other package; matplotlib (extra ``plots``) draws the other formats.
    """
    Curves.check(out)
    try:
        _history(source).plot(out)
    except DataError as error:
        raise FileError(out, str(error)) from None


def _history(source: Any) -> History:
    if isinstance(source, History):
        return source
    return History.read(source) if isinstance(source, (str, os.PathLike)) else History(source)
