"""Train by worker processes of this machine: start them, watch them, end them."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparknet.comm.grid import bounds
from sparknet.comm.threads import start
from sparknet.comm.wire import choose_seal
from sparknet.errors import PeerLost
from sparknet.native import NDArray
from sparknet.training.checkpoints.snapshot import newest
from sparknet.training.checkpoints.store import Store
from sparknet.training.driver.crew import Crew, WorkerHost
from sparknet.training.driver.failure import Failure
from sparknet.training.driver.membership import Elastic
from sparknet.training.driver.run import Run
from sparknet.training.driver.setup import RunSetup
from sparknet.training.settings.training import ProcessSettings
from sparknet.training.workers.rounds import Outcome
from sparknet.training.workers.run_spec import RunSpec

PROGRAM = "sparknet.training.workers.process"
_END = 10.0
"""Seconds that a process may take to end after its work."""
_LONGEST_LOOK = 1.0
"""Seconds between two looks at a process; more means that this process was paused."""


@dataclass(frozen=True)
class Place:
    """What a process is given."""

    spec: RunSpec
    number: int
    ranks: Sequence[int]
    """The workers that it carries to the end; where hosts change, its number."""
    folder: str
    """The run's temporary folder; a worker whose parent is gone removes it."""
    records: str
    validation: str | None
    threads: int


class ProcessHost(WorkerHost):
    """A process of this machine, which carries one or several workers."""

    def __init__(self, place: Place, store: Store | None, when_ended: Callable[[], None]) -> None:
        self.ranks = place.ranks
        self._place, self._store, self._when_ended = place, store, when_ended
        self.process: subprocess.Popen[bytes]
        self._channel: socket.socket
        """Closes when the process ends; the process ends when it closes."""
        self._ended = threading.Event()
        self._spent: float | None = None
        """The processor time of its start, when it was looked at last."""
        self._looked = self._idle = 0.0
        """When that was, and the seconds for which it has used no processor time."""

    def start(self) -> None:
        self._channel, theirs = socket.socketpair()
        paths = [path or str(Path.cwd()) for path in sys.path]
        with closing(theirs):
            self.process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env={
                    "GLOG_minloglevel": "1",  # every worker would log the same lines
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "OMP_NUM_THREADS": str(self._place.threads),
                },
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # the parent handles an interruption at the terminal
            )
        with tempfile.TemporaryFile() as file:  # a process that hangs takes no bytes
            pickle.dump(self._place, file)
            file.flush()
            socket.send_fds(self._channel, [b"."], [file.fileno()])
        self._thread = threading.Thread(target=self._watch, daemon=True)
        start(self._thread)

    def _watch(self) -> None:
        with suppress(OSError):
            self._channel.recv(1)
        self._ended.set()
        self._when_ended()

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    def cancel(self) -> None:
        self.process.kill()

    def close(self) -> None:
        try:
            self.process.wait(_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._thread.join()
        self._channel.close()

    def failure(self, reports: Sequence[Failure]) -> PeerLost:
        fault = f"process {self.process.pid} {self._end()}"
        return PeerLost(self.ranks[0], "this machine", f"{fault}; {self._saved()}")

    def hung(self, deadline: float) -> str | None:
        """Return the fault if it hangs; a pause of this process itself counts for a moment only."""
        now, spent = time.monotonic(), processor_time(self.process.pid)
        moved = spent is None or spent != self._spent
        self._idle = 0.0 if moved else self._idle + min(now - self._looked, _LONGEST_LOOK)
        self._spent, self._looked = spent, now
        if self._idle <= deadline:
            return None
        fault = f"process {self.process.pid} has not called the driver"
        return f"{fault}, and did nothing for {deadline:g} s; {self._saved()}"

    def _saved(self) -> str:
        if self._store is None:
            return "no snapshots are made"
        round = newest(self._store)
        return (
            "there is no snapshot yet"
            if round is None
            else f"resume from {self._store.path(round)}"
        )

    def _end(self) -> str:
        try:
            code = self.process.wait(_END)
        except subprocess.TimeoutExpired:
            return "hung up and does not end"
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with status {code} and no word to the driver"


def processor_time(process: int) -> float | None:
    """Return the ticks that a process has used so far; None where nobody says."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    user, system = text.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


def conduct(
    given: ProcessSettings,
    setup: RunSetup,
    initial: NDArray,
    shared: Mapping[str, Any],
    folder: str,
    **changed: Any,
) -> tuple[Outcome, NDArray, Run]:
    """Train by processes, and return how it ended and with which weights."""
    store = setup.open_store()
    with Run(
        initial,
        store,
        given.on_event,
        resume=given.resume,
        seal=choose_seal(given.protection or "sealed"),
        deadline=given.deadline,
        elastic=Elastic.of(given),
    ) as run:
        spec = setup.spec(run.link(), None if store is None else store.place, **changed)
        threads = given.threads or share_of_cores(given.workers)

        hosts = given.hosts or given.workers
        shares = [[*range(begin, end)] for begin, end in bounds(given.workers, hosts)]

        def host(number: int, when_ended: Callable[[], None]) -> WorkerHost:
            ranks = [number] if spec.is_elastic else shares[number]
            place = Place(spec, number, ranks, folder, **shared, threads=threads)
            return ProcessHost(place, store, when_ended)

        least = given.min_hosts or hosts
        outcome, trained = run.supervise(
            Crew(run.driver, run.history, host, hosts, least, given.restarts)
        )
        if store is not None:
            store.clean()
    return outcome, trained, run


def share_of_cores(workers: int) -> int:
    """Return the threads of each of so many workers."""
    return max(1, usable_cores() // workers)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
