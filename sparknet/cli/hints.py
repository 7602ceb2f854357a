"""hint: advice about an error."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from sparknet.errors import FileError, MissingExtra, OutOfMemory, WeightsError


def hint(error: Exception) -> str | None:
    """A line of advice to print after an error; None if there is none."""
    if isinstance(error, WeightsError):
        return "'sparknet show' prints the layers of a .prototxt and of a .caffemodel"
    if isinstance(error, OutOfMemory):
        return "try a smaller batch"
    if isinstance(error, MissingExtra):
        return "'sparknet doctor' lists what is installed"
    return _near(Path(error.path)) if isinstance(error, FileError) else None


def _near(path: Path) -> str | None:
    """A suggestion of a file with a similar name, if the wanted file does not exist."""
    try:
        if path.exists() or not path.parent.is_dir():
            return None
        names = sorted(one.name for one in path.parent.iterdir())
    except (OSError, ValueError):
        return None
    near = get_close_matches(path.name, names, 1)
    return f"did you mean '{path.with_name(near[0])}'?" if near else None
