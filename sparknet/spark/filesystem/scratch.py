"""Scratch folders of worker processes in the executors' local directories, and their removal.

Spark's daemon of Python workers ends them by SIGHUP when its executor is gone; they remove their
folders before they end.  A killed process leaves its folder.  A folder's name therefore contains
its process, and the next process on the same executor removes the folders of dead ones.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.net.scratch import PRIVATE_FOLDER, owner, private, remove_abandoned

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "removed int"


@contextmanager
def scratch(run: str, leave: Callable[[], None] | None = None) -> Iterator[Path]:
    """Make a folder of this process for a run's files, and remove it at the end.

    SIGTERM calls ``leave``, or else ends the process at once.
    """
    remove_abandoned(local_directory())
    folder = local_directory() / f"sparknet-{run}-{owner()}"
    folder.mkdir(mode=PRIVATE_FOLDER, parents=True)
    with _removed_at_signals(folder, leave):
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _removed_at_signals(folder: Path, leave: Callable[[], None] | None) -> Iterator[None]:
    """Removes the folder also when a signal ends the process.

    The handler raises no exception: one would be lost in a destructor, and one that arrives while
    a lock is waited for comes out as "release unlocked lock", which the driver would take for an
    error of the user's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: object) -> None:
        if number == signal.SIGTERM and leave is not None:
            leave()
            return
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + number)

    signals = signal.SIGHUP, signal.SIGTERM
    before = [signal.signal(one, end) for one in signals]
    try:
        yield
    finally:
        for one, handler in zip(signals, before, strict=True):
            signal.signal(one, handler)


def local_directory() -> Path:
    """Return the executor's local directory; Spark removes it when the executor ends."""
    base = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(base or tempfile.gettempdir())


def sweep(batches: Iterable[pa.RecordBatch], run: str) -> Iterator[pa.RecordBatch]:
    """Yield a task that removes a run's abandoned folders and kills its hanging processes."""
    import pyarrow as pa

    for _ in batches:
        pass
    for folder in local_directory().glob(f"sparknet-{run}-*"):
        _kill_sibling(int(folder.name.rpartition("-")[2]), folder)
    removed = remove_abandoned(local_directory())
    forget(local_directory(), run)
    yield pa.RecordBatch.from_pydict({"removed": pa.array([removed], pa.int32())})


def _kill_sibling(process: int, folder: Path) -> None:
    """Kill a Python worker of the same daemon: Spark forgets one that hangs."""
    with suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        if process != os.getpid() and int(fields[1]) == os.getppid():
            os.kill(process, signal.SIGKILL)
            shutil.rmtree(folder, ignore_errors=True)


_PAUSE = 0.05
"""Seconds between two tries to be the one that reads."""
PATIENCE = 20.0
"""Seconds for which a reader may write nothing, before another one reads for itself."""


def once(folder: Path, names: tuple[str, ...], make: Callable[[], None]) -> None:
    """Have files of these ``names`` in a worker's ``folder``: another worker's, or ``make`` them.

    The last name is that of the file that is complete last.
    """
    run, place = folder.name.rsplit("-", 2)[0], folder.parent
    with _turn(place / f"{run}.lock", lambda: _size_of_folders(place, run)):
        if not any(_linked(other, folder, names) for other in _folders(place, run)):
            make()


def forget(place: Path, run: str) -> None:
    """Remove what a run leaves beside its folders."""
    (place / f"sparknet-{run}.lock").unlink(missing_ok=True)


def _folders(place: Path, run: str) -> Iterator[Path]:
    """Yield those of this user: others could write anything into theirs."""
    for folder in sorted(place.glob(f"{run}-*-*")):
        with suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                yield folder


def _linked(other: Path, folder: Path, names: tuple[str, ...]) -> bool:
    """Return whether another worker has all files; a folder that goes meanwhile is like none."""
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


def _size_of_folders(place: Path, run: str) -> int:
    """Return how many bytes there are in the folders of a run."""
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
            if (size_now := written()) != size:
                size, since = size_now, now
            elif now - since > PATIENCE:
                break
        yield


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
