"""A process with workers of this machine: python -m sparknet.training.workers.process FILE_NUMBER

FILE_NUMBER is a socket to the process that started it (`sparknet.training.workers.local`).  This
process ends when that one does.
"""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

from sparknet.comm.rpc import Line
from sparknet.comm.threads import start
from sparknet.native import set_threads
from sparknet.training.workers.host import Departure, carry, carry_for
from sparknet.training.workers.host_memory import HostMemory
from sparknet.training.workers.local import Place
from sparknet.training.workers.records import WorkerPlace, WorkerRecords
from sparknet.training.workers.shared_data import open_shared
from sparknet.training.workers.worker import take_part


def main(number: int) -> int:
    parent = socket.socket(fileno=number)
    _, files, _, _ = socket.recv_fds(parent, 1, 1)
    with os.fdopen(files[0], "rb") as file:
        file.seek(0)
        place: Place = pickle.load(file)  # from the process that started this one
    start(threading.Thread(target=_leave_with, args=(parent, place.folder), daemon=True))
    try:
        memory = HostMemory() if place.spec.is_elastic else None
        work = partial(run, place, memory)
        if memory is None:
            carry(place.spec.link, place.ranks, work)
        else:
            carry_for(place.spec.link, place.number, work, Departure())
    except Exception:  # it was reported to the driver
        return 1
    return 0


def run(place: Place, memory: HostMemory | None, rank: int, line: Line) -> None:
    set_threads(place.threads)
    folder = Path(tempfile.mkdtemp(prefix=f"worker-{rank}-", dir=place.folder))
    size = place.spec.settings.workers
    worker = WorkerPlace(rank, size, "127.0.0.1", folder, None, place.number, memory)
    take_part(place.spec, worker, line, partial(_part, place))


def _part(place: Place) -> WorkerRecords:
    held_out = None if place.validation is None else open_shared(place.validation)
    return WorkerRecords(open_shared(place.records), held_out, is_whole=True)


def _leave_with(parent: socket.socket, folder: str) -> None:
    """End this process, and remove the folder, when the parent process is gone."""
    while parent.recv(1):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
