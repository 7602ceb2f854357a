"""Hints: what to do about an error, where that can be said."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from sparknet.errors import FileError, MissingExtra, OutOfMemory, WeightsError


def hint(error: Exception) -> str | None:
    """A line to follow an error's own; None where there is nothing to add."""
    if isinstance(error, WeightsError):
        return "'sparknet show' prints the layers of a .prototxt and of a .caffemodel"
    if isinstance(error, OutOfMemory):
        return "try a smaller batch"
    if isinstance(error, MissingExtra):
        return "'sparknet doctor' lists what is installed"
    return _near(Path(error.path)) if isinstance(error, FileError) else None


def _near(path: Path) -> str | None:
    """A file of almost the same name, where the one that was asked for is not there."""
    try:
        if path.exists() or not path.parent.is_dir():
            return None
        names = sorted(one.name for one in path.parent.iterdir())
    except (OSError, ValueError):
        return None
    near = get_close_matches(path.name, names, 1)
    return f"did you mean '{path.with_name(near[0])}'?" if near else None
