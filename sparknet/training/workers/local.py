"""Train by worker processes of this machine: start them, watch them, end them."""

from __future__ import annotations

import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sparknet.comm.wire import choose_seal
from sparknet.errors import PeerLost
from sparknet.native import NDArray
from sparknet.training.checkpoints.snapshot import newest
from sparknet.training.checkpoints.store import Store
from sparknet.training.driver.failure import Failure
from sparknet.training.driver.membership import Elastic
from sparknet.training.driver.run import Run, Workers
from sparknet.training.driver.setup import RunSetup
from sparknet.training.settings.training import ProcessSettings, RunSettings
from sparknet.training.strategies import Strategy
from sparknet.training.workers.rounds import Outcome
from sparknet.training.workers.run_spec import RunSpec

PROGRAM = "sparknet.training.workers.process"
_END = 10.0
"""Seconds that a process may take to end after its work."""
_LONGEST_LOOK = 1.0
"""Seconds between two looks at a process; more means that this process was paused."""


@dataclass(frozen=True)
class Place:
    """What a worker process is given."""

    spec: RunSpec
    rank: int
    size: int
    folder: str
    """The run's temporary folder; a worker whose parent is gone removes it."""
    records: str
    validation: str | None
    threads: int
    own: str
    """Where the workers have folders of their own."""


@dataclass
class _Member:
    """One worker process."""

    rank: int
    process: subprocess.Popen[bytes]
    channel: socket.socket
    """Closes when the process ends; the process ends when it closes."""
    has_ended: bool = False
    spent: float | None = None
    """The processor time of its start, when it was looked at last."""
    looked: float = 0.0
    idle: float = 0.0
    """The seconds for which it has used no processor time."""

    def look(self) -> None:
        """Add to `idle`; a pause of this process itself counts for a moment only."""
        now, spent = time.monotonic(), processor_time(self.process.pid)
        moved = spent is None or spent != self.spent
        self.idle = 0.0 if moved else self.idle + min(now - self.looked, _LONGEST_LOOK)
        self.spent, self.looked = spent, now


class LocalWorkers(Workers):
    """One process for each place; ``places`` gives those of so many workers."""

    restarts = False

    def __init__(
        self,
        places: Callable[[int], Sequence[Place]],
        size: int,
        store: Store | None,
        least: int,
        restarts: int | None = None,
    ) -> None:
        """``least`` is the smallest number of workers that go on when others are lost.

        With ``restarts`` they go on in their processes, and so many lost ones are replaced; else
        all start again.
        """
        self._restarts = restarts or 0
        self._goes_on = restarts is not None
        self._make, self._places, self._store = places, places(size), store
        self._least = least
        self._deadline = self._places[0].spec.settings.deadline
        self._members: list[_Member] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> LocalWorkers:
        try:
            for place in self._places:
                self._start(place)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        if self._store is not None:
            self._store.clean()

    def _start(self, place: Place) -> None:
        member = _started(place)
        self._members.append(member)
        self._selector.register(member.channel, selectors.EVENT_READ, member)

    def wait(self, seconds: float) -> bool:
        for key, _ in self._selector.select(seconds):
            key.data.has_ended = True
            self._selector.unregister(key.fileobj)
        return all(member.has_ended for member in self._members)

    @property
    def some_ended(self) -> bool:
        return any(member.has_ended for member in self._members)

    def hung(self, has_called: Callable[[int], bool]) -> PeerLost | None:
        for member in self._members:
            if member.has_ended or has_called(member.rank):
                continue
            member.look()
            if member.idle > self._deadline:
                what = f"process {member.process.pid} has not called the driver"
                idle = f"and did nothing for {self._deadline:g} s"
                return PeerLost(member.rank, "this machine", f"{what}, {idle}; {self._saved()}")
        return None

    def failure(self, said: Sequence[Failure]) -> Exception:
        """Return the error of a process that died without a report comes before the others'
        reports.
        """
        if silent := self._silent(said):
            return self._gone(silent[0])
        return said[0].error if said else self._gone(self._members[0])

    def fewer(self, said: Sequence[Failure]) -> LocalWorkers | None:
        silent = {member.rank for member in self._silent(said)}
        size = len(self._places) - max(len(silent), 1)  # a silent one has not ended
        if size < self._least or self._goes_on:
            return None
        return LocalWorkers(self._make, size, self._store, self._least)

    def renew(self, gone: Sequence[str]) -> int:
        for member in self._members:
            if any(one.endswith(f"(process {member.process.pid})") for one in gone):
                member.process.kill()  # it may be a silent one
        for member in [one for one in self._members if one.has_ended]:
            if not self._restarts:
                break
            self._restarts -= 1
            self._members.remove(member)
            self._discard(member)
            self._start(self._make(len(self._places))[member.rank])
        return sum(not member.has_ended for member in self._members)

    def _silent(self, said: Sequence[Failure]) -> list[_Member]:
        """Return those that ended without a report."""
        spoke = {one.worker for one in said}
        return [one for one in self._members if one.has_ended and one.rank not in spoke]

    def _gone(self, member: _Member) -> PeerLost:
        how = f"process {member.process.pid} {_end_of(member.process)}"
        return PeerLost(member.rank, "this machine", f"{how}; {self._saved()}")

    def _saved(self) -> str:
        if self._store is None:
            return "no snapshots are made"
        round = newest(self._store)
        path = None if round is None else self._store.path(round)
        return "there is no snapshot yet" if path is None else f"resume from {path}"

    def _end(self) -> None:
        for member in self._members:
            self._discard(member)
        self._selector.close()

    def _discard(self, member: _Member) -> None:
        try:
            member.process.wait(_END if member.has_ended else 0)
        except subprocess.TimeoutExpired:
            member.process.kill()
            member.process.wait()
        member.channel.close()


def _started(place: Place) -> _Member:
    mine, theirs = socket.socketpair()
    paths = [path or str(Path.cwd()) for path in sys.path]
    with closing(theirs):
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            env={
                "GLOG_minloglevel": "1",  # every worker would log the same lines
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "OMP_NUM_THREADS": str(place.threads),
            },
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # the parent handles an interruption at the terminal
        )
    with tempfile.TemporaryFile() as file:  # a process that hangs takes no bytes
        pickle.dump(place, file)
        file.flush()
        socket.send_fds(mine, [b"."], [file.fileno()])
    return _Member(place.rank, process, mine)


def processor_time(process: int) -> float | None:
    """Return the ticks that a process has used so far; None where nobody says."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    user, system = text.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)


def _end_of(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(_END)
    except subprocess.TimeoutExpired:
        return "hung up and does not end"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with status {code} and no word to the driver"


def conduct(
    given: ProcessSettings,
    begun: RunSetup,
    initial: NDArray,
    shared: Mapping[str, Any],
    folder: str,
    **changed: Any,
) -> tuple[Outcome, NDArray, Run]:
    """Train by processes, and return how it ended and with which weights."""
    store = begun.open_store()
    elastic = elastic_of(given, begun.strategy)
    seal = choose_seal(given.protection or "sealed")
    with Run(
        initial,
        store,
        given.on_event,
        resume=given.resume,
        seal=seal,
        deadline=given.deadline,
        elastic=elastic,
    ) as run:
        place = None if store is None else store.place
        spec = replace(begun.spec(run.link(), place, **changed), elastic=elastic is not None)

        def places(workers: int) -> list[Place]:
            share = given.threads or share_of_cores(workers)
            own = tempfile.mkdtemp(prefix="workers-", dir=folder)
            return [
                Place(spec, rank, workers, folder, **shared, threads=share, own=own)
                for rank in range(workers)
            ]

        least = given.min_workers or given.workers
        restarts = None if elastic is None else given.restarts
        workers = LocalWorkers(places, given.workers, store, least, restarts)
        outcome, trained = run.supervise(workers)
    return outcome, trained, run


def elastic_of(given: RunSettings, strategy: Strategy) -> Elastic | None:
    """Return how many workers a run may have, if those that are left go on in their processes."""
    if given.min_workers is None or not strategy.goes_on:
        return None
    behind = given.leave_behind, given.deadline / 4
    return Elastic(given.workers, given.min_workers, given.start_wait, *behind)


def share_of_cores(workers: int) -> int:
    """Return the threads of each of so many workers."""
    return max(1, usable_cores() // workers)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
