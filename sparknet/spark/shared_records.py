"""Records that the workers of one executor have in common: read by one, and linked by the others.

A link is a name of its own for the same file.  So each worker removes its folder as if it were
alone, the file goes with the last of them, and a killed one takes nothing from the others.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sparknet.net.scratch import private

_PAUSE = 0.05
"""Seconds between two tries to be the one that reads."""
PATIENCE = 20.0
"""Seconds for which a reader may write nothing, before another one reads for itself."""


def once(folder: Path, names: tuple[str, ...], make: Callable[[], None]) -> None:
    """Have files of these ``names`` in a worker's ``folder``: another worker's, or ``make`` them.

    The last name is that of the file that is complete last.
    """
    run, place = folder.name.rsplit("-", 2)[0], folder.parent
    with _turn(place / f"{run}.lock", lambda: _written(place, run)):
        if not any(_linked(other, folder, names) for other in _folders(place, run)):
            make()


def forget(place: Path, run: str) -> None:
    """Remove what a run leaves beside its folders."""
    (place / f"sparknet-{run}.lock").unlink(missing_ok=True)


def _folders(place: Path, run: str) -> Iterator[Path]:
    """Those of this user: others could write anything into theirs."""
    for folder in sorted(place.glob(f"{run}-*-*")):
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                yield folder


def _linked(other: Path, folder: Path, names: tuple[str, ...]) -> bool:
    """Whether another worker has all files; a folder that goes meanwhile is like none."""
    if other == folder or not (other / names[-1]).exists():
        return False
    try:
        for name in names:
            (folder / name).hardlink_to(other / name)
    except OSError:
        for name in names:
            (folder / name).unlink(missing_ok=True)
        return False
    return True


def _written(place: Path, run: str) -> int:
    """How many bytes there are in the folders of a run."""
    size = 0
    for folder in _folders(place, run):
        for file in folder.glob("*"):
            with suppress(OSError):
                size += file.lstat().st_size
    return size


@contextmanager
def _turn(lock: Path, written: Callable[[], int]) -> Iterator[None]:
    """Wait until no other worker reads, or until the one that reads gets no further.

    The system lets go of the lock of a process that ends.
    """
    with open(lock, "ab", opener=private) as file:
        size, since = written(), time.monotonic()
        while not _locks(file.fileno()):
            time.sleep(_PAUSE)
            now = time.monotonic()
            if (found := written()) != size:
                size, since = found, now
            elif now - since > PATIENCE:
                break
        yield


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
