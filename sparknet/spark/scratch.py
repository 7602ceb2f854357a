"""Scratch folders of worker processes in the executors' local directories, and their removal.

Spark's daemon of Python workers ends them by SIGHUP when its executor is gone; they remove their
folders before they end.  A killed process leaves its folder.  A folder's name therefore contains
its process, and the next process on the same executor removes the folders of dead ones.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.net.scratch import PRIVATE_FOLDER, owner, remove_abandoned
from sparknet.spark.shared_records import forget

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "removed int"


@contextmanager
def scratch(run: str, leave: Callable[[], None] | None = None) -> Iterator[Path]:
    """A folder of this process for a run's files; it is removed at the end.

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
    """The executor's local directory; Spark removes it when the executor ends."""
    base = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    return Path(base or tempfile.gettempdir())


def sweep(batches: Iterable[pa.RecordBatch], run: str) -> Iterator[pa.RecordBatch]:
    """A task that removes a run's abandoned folders, and kills processes that hang in the run."""
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
