"""hint: advice about an error."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from sparknet.errors import FileError, MissingExtra, OutOfMemory, WeightsError

MISSING = ("does not exist", "no such file", "no such file or folder", "no such folder")


def hint(error: Exception) -> str | None:
    """A line of advice to print after an error; None if there is none."""
    if isinstance(error, WeightsError):
        return "'sparknet show' prints the layers of a .prototxt and of a .caffemodel"
    if isinstance(error, OutOfMemory):
        return "try a smaller batch"
    if isinstance(error, MissingExtra):
        return "'sparknet doctor' lists what is installed"
    if isinstance(error, FileError) and str(error).endswith(MISSING):
        return _near(Path(error.path))
    return None


def left_out(count: int) -> str:
    """What is said of images that could not be read."""
    return "1 image was left out" if count == 1 else f"{count} images were left out"


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
