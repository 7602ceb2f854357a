"""Temporary folders that say whose they are, so that what a killed process left can be removed."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import tempfile
from functools import cache
from pathlib import Path

PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600
"""Modes of what nobody but this user may read: records, weights and snapshots."""


def private(path: str, flags: int) -> int:
    """Opens a file that only this user may read, if it is new: an ``opener`` for `open`."""
    return os.open(path, flags, PRIVATE_FILE)


def scratch_folder(kind: str = "run") -> tempfile.TemporaryDirectory[str]:
    """Return a folder of this process; remove those of dead processes of this user."""
    remove_abandoned(Path(tempfile.gettempdir()))
    return tempfile.TemporaryDirectory(prefix=f"sparknet-{kind}-", suffix=f"-{owner()}")


def owner() -> str:
    """Return how the name of a folder of this process ends."""
    return f"{_machine()}-{os.getpid()}"


def remove_abandoned(place: Path) -> int:
    """Remove the folders of dead processes; how many there were."""
    paths = [path for path in place.glob("sparknet-*-*") if _is_abandoned(path)]
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
    return len(paths)


def _is_abandoned(path: Path) -> bool:
    """Return whether it is a folder of this user, of a process of this machine that is no more."""
    _, machine, process = ("--" + path.name).rsplit("-", 2)
    if machine != _machine() or not process.isdecimal():
        return False
    try:
        status = path.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False


@cache
def _machine() -> str:
    """Return where a process number means the same process: a host, and a container's numbers."""
    numbers = Path("/proc/self/ns/pid")
    space = str(numbers.readlink()) if numbers.is_symlink() else ""
    return hashlib.sha256(f"{socket.gethostname()} {space}".encode()).hexdigest()[:8]
