"""Crew: the worker processes of one machine, from their start until none is left."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from sparknet.dist.channel import Channel
from sparknet.dist.events import OnEvent
from sparknet.dist.failure import error_of
from sparknet.dist.job import Job
from sparknet.dist.snapshot import newest
from sparknet.dist.store import FolderStore
from sparknet.dist.worker import Outcome
from sparknet.errors import PeerLost, SparkNetError

PROGRAM = "sparknet.dist.process"
_GRACE = 2.0
"""Seconds in which the others may say what became of them, once one has failed."""
_END = 10.0

Json = dict[str, Any]


@dataclass
class Member:
    """One worker process, and what is known of it."""

    rank: int
    process: subprocess.Popen[bytes]
    channel: Channel
    address: Any = None
    outcome: Json | None = None
    error: Json | None = None

    @property
    def has_ended(self) -> bool:
        return self.channel.ended

    @property
    def has_failed(self) -> bool:
        return self.error is not None or (self.has_ended and self.outcome is None)


@dataclass
class Crew:
    """Starts workers, introduces them to each other, passes their events on."""

    job: Job
    size: int
    on_event: OnEvent
    members: list[Member] = field(default_factory=list)
    stopping: bool = False
    """Whether the workers were asked to stop."""

    def run(self) -> Outcome:
        """Until all have ended.  However it ends, no process is left."""
        try:
            with self._interruptible():
                self._start()
                self._listen()
        finally:
            self._end()
        outcome = self.members[0].outcome
        assert outcome is not None
        return Outcome(**outcome)

    # -- the beginning -------------------------------------------------------------------

    def _start(self) -> None:
        secret = secrets.token_hex(32)
        for rank in range(self.size):
            member = _started(rank, self.job.threads)
            self.members.append(member)
            job = self.job.to_json()
            member.channel.send({"job": job, "rank": rank, "size": self.size, "secret": secret})
            if self.stopping:
                member.channel.send({"stop": True})

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """The first interruption asks the workers to stop, the second ends them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def stop(*_: object) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.stopping = True
            for member in self.members:
                member.channel.send({"stop": True})

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    # -- while they work -----------------------------------------------------------------

    def _listen(self) -> None:
        until: float | None = None
        with selectors.DefaultSelector() as selector:
            for member in self.members:
                selector.register(member.channel, selectors.EVENT_READ, member)
            while selector.get_map() and (until is None or monotonic() < until):
                wait = None if until is None else max(0.0, until - monotonic())
                for key, _ in selector.select(wait):
                    self._hear(key.data)
                    if key.data.has_ended:
                        selector.unregister(key.fileobj)
                if until is None and any(member.has_failed for member in self.members):
                    until = monotonic() + _GRACE
        if any(member.has_failed for member in self.members):
            raise self._failure()

    def _hear(self, member: Member) -> None:
        for message in member.channel.read():
            if "event" in message:
                self.on_event(message["event"])
            elif "address" in message:
                member.address = message["address"]
                self._introduce()
            else:
                member.outcome = message.get("done", member.outcome)
                member.error = message.get("error", member.error)

    def _introduce(self) -> None:
        """Once all have a port, each is told of all."""
        addresses = [member.address for member in self.members]
        if all(addresses):
            for member in self.members:
                member.channel.send({"addresses": addresses})

    # -- the end -------------------------------------------------------------------------

    def _failure(self) -> SparkNetError:
        """What ended the run: a process that is gone, or the first cause among errors."""
        failed = [member for member in self.members if member.has_failed]
        for member in failed:
            if member.error is None:
                return self._gone(member)
        errors = [_error_of(member) for member in failed]
        causes = [error for error in errors if not isinstance(error, PeerLost)]
        return (causes or errors)[0]

    def _gone(self, member: Member) -> PeerLost:
        how = f"process {member.process.pid} {_end_of(member.process)}"
        return PeerLost(member.rank, "this machine", f"{how}; {self._kept()}")

    def _kept(self) -> str:
        if self.job.snapshots is None:
            return "no snapshots are made"
        store = FolderStore(self.job.snapshots)
        round = newest(store)
        return "there is no snapshot yet" if round is None else f"resume from {store.path(round)}"

    def _end(self) -> None:
        for member in self.members:
            try:
                member.process.wait(_END if member.outcome is not None else 0)
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()
            member.channel.close()


def _started(rank: int, threads: int) -> Member:
    mine, theirs = Channel.pair()
    paths = [path or str(Path.cwd()) for path in sys.path]
    with closing(theirs):
        process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            env={
                "GLOG_minloglevel": "1",  # each worker would say the same
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "OMP_NUM_THREADS": str(threads),
            },
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # an interruption at the terminal is the parent's to handle
        )
    return Member(rank, process, mine)


def _end_of(process: subprocess.Popen[bytes]) -> str:
    try:
        code = process.wait(_END)
    except subprocess.TimeoutExpired:
        return "hung up and does not end"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with status {code}"


def _error_of(member: Member) -> SparkNetError:
    assert member.error is not None
    error = error_of(member.error, member.rank)
    if trace := member.error.get("trace"):
        error.__cause__ = RuntimeError(trace)
    return error
