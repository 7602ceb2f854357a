"""RemoteDriver: the client's side of a meeting point, where executors cannot reach the client.

Everything goes through jobs of Spark: the client sends DataFrames and reads rows.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.comm.acceptor import open_port
from sparknet.comm.rpc import Address, Link
from sparknet.errors import PeerLost, SparkError
from sparknet.spark.cluster import preflight
from sparknet.spark.cluster.background_job import Job
from sparknet.spark.cluster.session import bind_address, driver_address
from sparknet.spark.hosts import meeting_point
from sparknet.spark.hosts.meeting_point import PIECE, UPLOAD, WEIGHTS, Brief
from sparknet.training.checkpoints.store import Store
from sparknet.training.driver.driver import Driver, RunProgress
from sparknet.training.driver.membership import Elastic, Membership
from sparknet.training.driver.rendezvous import Standstill
from sparknet.training.events import OnEvent

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_PAUSE = 0.3
"""Seconds between two tasks that fetch news."""
_SLOTS = 60.0
"""Seconds that such a task may take to start."""
_TRIES = 3
_END = 10.0
"""Seconds that the meeting point may take to end."""
_BLOCK = 8
"""Pieces that one job uploads."""
_REACH = 3.0
"""Seconds that a connection to the client may take."""

Piece = tuple[str, int, bytes]


def reaches_client(session: SparkSession, patience: float | None) -> bool:
    """Return whether an executor can open a connection to this machine."""
    token = secrets.token_bytes(16)
    with closing(open_port(bind_address(session), (0,))) as listener:
        address = driver_address(session, listener.getsockname()[1])
        threading.Thread(target=_say, args=(listener, token), daemon=True).start()
        frame = session.range(0, 1, 1, 1).mapInArrow(partial(_try, address=address), "token binary")
        with Job(session, frame, "sparknet: can executors reach the client") as job:
            if not job.wait(patience):
                raise SparkError(
                    f"Spark ran no task within {patience or 0:g} s (start_timeout=): see what "
                    "holds its slots"
                )
            try:
                return any(bytes(row.token) == token for row in job.result())
            except Exception as error:
                raise preflight.translated(error) from error


def _say(listener: socket.socket, token: bytes) -> None:
    """Say a token to whoever connects, until the port is closed."""
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with closing(connection), suppress(OSError):
                connection.sendall(token)


def _try(batches: Iterable[pa.RecordBatch], address: Address) -> Iterator[pa.RecordBatch]:
    """Yield what is said at an address."""
    import pyarrow as pa

    for _ in batches:
        pass
    token = b""
    with suppress(OSError), socket.create_connection(address, _REACH) as connection:
        token = connection.recv(16)
    yield pa.RecordBatch.from_pydict({"token": [token]})


class _RemoteMembers(Membership):
    """What the client knows of a run's members."""

    def __init__(self, elastic: Elastic) -> None:
        self.elastic, self.state = elastic, dict[str, Any]()
        self._lost: list[int] = []

    def note_state(self, state: dict[str, Any]) -> None:
        self.state = state
        self._lost += state["gone"]

    @property
    def lacks(self) -> bool:
        return int(self.state.get("present", 0)) < self.elastic.least

    @property
    def loss(self) -> PeerLost | None:
        loss = self.state.get("lost")
        return None if loss is None else PeerLost(*loss)

    def departures(self) -> list[int]:
        losses, self._lost = self._lost, []
        return losses

    def leave_behind(self) -> None:
        """Do nothing: the meeting point does it."""

    def send_away(self, hosts: object) -> None:
        """Do nothing: under Spark Connect nobody knows which executors leave."""


class RemoteDriver(Driver):
    """A driver of which this process has only the news."""

    def __init__(
        self,
        link: Link,
        weights: memoryview,
        store: Store | None,
        on_event: OnEvent,
        resume: bool,
        elastic: Elastic | None,
        *,
        session: SparkSession,
        patience: float | None,
    ) -> None:
        self.progress, self.deadline = RunProgress(), link.deadline
        self.members = None if elastic is None else _RemoteMembers(elastic)
        self._on_event, self._lock = on_event, threading.Lock()
        self._session, self._store, self._stop = session, store, False
        self._state: dict[str, Any] = {}
        self._weights_here = bytearray(weights.nbytes)
        self._files: dict[str, bytearray] = {}
        """The files of the snapshot that is coming."""
        self._after = 0
        """The number of the last row of news."""
        self._turn, self._over = threading.RLock(), threading.Event()
        rounds = [] if store is None else list(store.rounds())
        place = None if store is None else store.place
        brief = Brief(link, weights.nbytes, resume, place, rounds, elastic)
        self._point = self._start_point(brief)
        try:
            self.link = replace(link, driver=self._address(patience))
            self._upload(weights, store, rounds[-1] if resume and rounds else None)
        except BaseException:
            self._point.__exit__()
            raise
        self._thread = threading.Thread(target=self._follow, name="sparknet-news", daemon=True)
        self._thread.start()

    def _start_point(self, brief: Brief) -> Job:
        """Start the job that holds the meeting point."""
        self._came = threading.Event()
        self._where: list[Address] = []

        def hear(row: Any) -> None:
            self._where.append((row.host, row.port))
            self._came.set()

        rows = self._session.range(0, 2, 1, 2)
        work = partial(meeting_point.hold, brief=brief)
        frame = rows.mapInArrow(work, meeting_point.ADDRESS, barrier=True)
        name = "sparknet: the workers' meeting point"
        return Job(self._session, frame, name, self._came.set, on_row=hear).__enter__()

    def _address(self, patience: float | None) -> Address:
        self._came.wait(patience)
        if self._where:
            return self._where[0]
        if self._point.ended:
            try:
                self._point.result()
            except Exception as error:
                raise preflight.translated(error) from error
        raise SparkError(
            "executors cannot reach this machine, so the workers meet on one of them, and two "
            f"slots for that were not free within {patience or 0:g} s (start_timeout=): ask for "
            "fewer workers, or give the cluster more slots"
        )

    # -- what the run asks -----------------------------------------------------------------

    @property
    def trouble(self) -> tuple[float, str]:
        seconds, reason = self._state.get("trouble", (0.0, ""))
        return seconds, reason

    @property
    def present(self) -> int:
        return int(self._state.get("present", 0))

    def has_called(self, worker: int) -> bool:
        return worker in self._state.get("called", ())

    def standstill(self) -> Standstill | None:
        still = self._state.get("standstill")
        return None if still is None else (still[0], still[1])

    def catch_up(self) -> None:
        """Hear all that the workers have said so far."""
        if self.progress.broken is None:
            self._exchange(calls=[["state", {}]])

    def close(self) -> None:
        """End the meeting point, and all jobs."""
        self._over.set()
        self._thread.join()
        if not self._point.ended:
            with suppress(Exception):
                self._exchange(calls=[["end", {}]])
            self._point.wait(_END)
        self._point.__exit__()

    # -- jobs ------------------------------------------------------------------------------

    def _upload(self, weights: memoryview, store: Store | None, round: int | None) -> None:
        """Send the first weights and the snapshot to resume."""
        block: list[Piece] = []
        for piece in _pieces(weights, store, round):
            block.append(piece)
            if len(block) == _BLOCK:
                self._exchange(block)
                block = []
        self._exchange(block, [["ready", {"round": round}]])

    def _follow(self) -> None:
        """Hear news until the run is over."""
        failures = 0
        while not self._over.wait(_PAUSE):
            try:
                self._exchange()
                failures = 0
            except Exception as error:
                failures += 1
                if self._over.is_set():
                    return
                if failures == _TRIES or self._point.ended or isinstance(error, SparkError):
                    self.progress.broken = self.progress.broken or _loss_error(error)
                    return

    def _exchange(self, pieces: Sequence[Piece] = (), calls: Sequence[Any] = ()) -> None:
        """Run one task at the meeting point, and hear its rows."""
        session = self._session
        with self._turn:
            rows: DataFrame = session.range(0, 1, 1, 1)
            if pieces:
                rows = session.createDataFrame(list(pieces), UPLOAD).coalesce(1)
            work = partial(
                meeting_point.exchange,
                link=self.link,
                after=self._after,
                stop=self._stop,
                calls=calls,
            )
            frame = rows.mapInArrow(work, meeting_point.NEWS)
            with Job(session, frame, "sparknet: news of the workers") as job:
                until = time.monotonic() + _SLOTS
                while not job.wait(1.0):
                    if time.monotonic() > until:
                        raise SparkError(
                            f"no news of the workers for {_SLOTS:g} s: executors cannot reach "
                            "this machine, so a run needs two slots beside those of its workers"
                        )
                for row in job.result():
                    self._hear_row(row.number, row.kind, row.text, row.data)

    # -- news ------------------------------------------------------------------------------

    def _hear_row(self, number: int, kind: str, text: str, data: bytes) -> None:
        message = json.loads(text)
        if kind == "state":
            self._hear_state(message)
            return
        if number <= self._after:
            return
        self._after = number
        if kind == "event":
            with suppress(OSError):  # the listener failed: the run ends
                self.hear(message)
        elif kind == "weights":
            self._weights_here[message["place"] : message["place"] + len(data)] = data
        elif kind == "done":
            self.progress.weights, self.progress.outcome = self._weights_here, message
        else:
            assert self._store is not None
            _mirror(self._store, self._files, kind, message, data)

    def _hear_state(self, state: dict[str, Any]) -> None:
        self._state = state
        self.progress.starts = state["starts"]
        self.progress.failures[:] = state["failures"]
        if isinstance(self.members, _RemoteMembers):
            self.members.note_state(state)


def _mirror(
    store: Store, files: dict[str, bytearray], kind: str, message: dict[str, Any], data: bytes
) -> None:
    """Do with the client's snapshots what was done with those of the meeting point."""
    if kind == "piece":
        files.setdefault(message["name"], bytearray()).extend(data)
    elif kind == "begin":
        files.clear()
    elif kind == "commit":
        store.begin(message["round"])
        for name, content in files.items():
            store.put(message["round"], Path(name).name, [memoryview(content)])
        files.clear()
        store.commit(message["round"])
    elif kind == "drop":
        store.drop(message["round"])


def _pieces(weights: memoryview, store: Store | None, round: int | None) -> Iterator[Piece]:
    files: dict[str, Callable[[], memoryview]] = {WEIGHTS: lambda: weights}
    if store is not None and round is not None:
        for file in sorted(Path(store.path(round)).iterdir()):
            files[file.name] = lambda file=file: memoryview(file.read_bytes())  # type: ignore[misc]
    for name, load in files.items():
        content = load()
        for place in range(0, max(content.nbytes, 1), PIECE):
            yield name, place, bytes(content[place : place + PIECE])


def _loss_error(error: Exception) -> SparkError:
    what = preflight.translated(error)
    return SparkError(
        f"{what} (the workers' meeting point: fit(…, resume=True) continues from a snapshot)"
    )
