"""MeetingPoint: a run's driver on an executor, for a client that executors cannot reach.

One task of a barrier stage of two holds it; the other one tells the client its address and ends.
Short tasks, one after another, bring what the client has for it, and return its news as rows.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from sparknet.comm.rpc import Line, Link
from sparknet.errors import CommError
from sparknet.spark.cluster.gpus import gathered, task_host
from sparknet.spark.filesystem.scratch import scratch
from sparknet.training.checkpoints.store import Buffer, FolderStore, Store
from sparknet.training.driver.driver import Answer, Driver
from sparknet.training.driver.membership import Elastic
from sparknet.training.events import Event

if TYPE_CHECKING:
    import pyarrow as pa

ADDRESS = "host string, port int"
NEWS = "number long, kind string, text string, data binary"
UPLOAD = "name string, place long, data binary"
PIECE = 4 << 20
"""Bytes that a row carries: a message of Spark Connect holds 128 MiB."""
WEIGHTS = "weights"
_RANK = (1 << 16) - 1
"""The rank by which the client's tasks call; no worker has it."""
_MOST = 64 << 20
"""Bytes of news that one task returns."""


@dataclass(frozen=True)
class Brief:
    """What a meeting point must know of its run."""

    link: Link
    """The run's link; its address is not known yet."""
    size: int
    """Bytes of weights."""
    resume: bool
    place: str | None
    """The path of the run's snapshots on the client, if it has any."""
    rounds: Sequence[int]
    """The rounds that have a snapshot there."""
    elastic: Elastic | None


@dataclass
class _News:
    """A row for the client, which reads its piece of a file when it leaves."""

    number: int
    kind: str
    text: str
    data: Callable[[], Buffer] = lambda: b""
    forget: Callable[[], None] = lambda: None
    """Called once the client has the row."""


class NewsQueue:
    """News in order, each of which waits until the client has it."""

    def __init__(self) -> None:
        self._rows: deque[_News] = deque()
        self._count = 0
        self._lock = threading.Condition()

    def add(
        self,
        kind: str,
        text: str,
        data: Callable[[], Buffer] = lambda: b"",
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        with self._lock:
            self._count += 1
            self._rows.append(_News(self._count, kind, text, data, forget))
            self._lock.notify_all()

    def add_file(self, kind: str, name: str, view: memoryview) -> None:
        """Add a buffer in pieces."""
        for place in range(0, view.nbytes, PIECE):
            text = json.dumps({"name": name, "place": place})
            self.add(kind, text, partial(bytes, view[place : place + PIECE]))

    def after(self, number: int, seconds: float) -> _News | None:
        """Return the first row after a number; wait for it for some seconds."""
        with self._lock:
            while self._rows and self._rows[0].number <= number:
                self._rows.popleft().forget()
            self._lock.wait_for(lambda: self._rows or None, seconds)
            return self._rows[0] if self._rows else None


class MirroredStore(Store):
    """Snapshots in a folder of the executor, which the client gets as news."""

    def __init__(self, folder: Path, brief: Brief, news: NewsQueue) -> None:
        self.staged = FolderStore(folder / "snapshots")
        self._outgoing, self._news = folder / "outgoing", news
        self._place, self._older = str(brief.place), set(brief.rounds)
        """The rounds that only the client has."""

    def begin(self, round: int) -> None:
        self.staged.begin(round)

    def put(self, round: int, name: str, parts: Iterable[Buffer]) -> None:
        self.staged.put(round, name, parts)

    def commit(self, round: int) -> None:
        self.staged.commit(round)
        copy = self._outgoing / str(round)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.staged.path(round), copy, copy_function=os.link)
        self._news.add("begin", json.dumps({"round": round}))
        for file in sorted(copy.iterdir()):
            for place in range(0, max(file.stat().st_size, 1), PIECE):
                text = json.dumps({"name": file.name, "place": place})
                self._news.add("piece", text, partial(_piece, file, place))
        forget = partial(shutil.rmtree, copy, ignore_errors=True)
        self._news.add("commit", json.dumps({"round": round}), forget=forget)

    def rounds(self) -> Sequence[int]:
        return sorted(self._older.union(self.staged.rounds()))

    def get(self, round: int, name: str) -> Buffer:
        return self.staged.get(round, name)

    def drop(self, round: int) -> None:
        self._older.discard(round)
        self.staged.drop(round)
        self._news.add("drop", json.dumps({"round": round}))

    def clean(self) -> None:
        self.staged.clean()

    def path(self, round: int, name: str = "") -> str:
        folder = f"{self._place}/round-{round:08d}"
        return f"{folder}/{name}" if name else folder

    def restore(self, round: int, folder: Path) -> None:
        """Take a snapshot that the client sent."""
        self.staged.begin(round)
        for file in folder.iterdir():
            self.staged.put(round, file.name, [file.read_bytes()])
        self.staged.commit(round)


def _piece(file: Path, place: int) -> bytes:
    with file.open("rb") as stream:
        stream.seek(place)
        return stream.read(PIECE)


class MeetingPoint(Driver):
    """A driver whose events, snapshots and weights wait for the client's tasks."""

    def __init__(self, brief: Brief, folder: Path, host: str) -> None:
        self._brief, self._uploads, self.news = brief, folder / "uploads", NewsQueue()
        self._initial_weights = memoryview(bytearray(brief.size))
        self._uploads.mkdir()
        self._mirror = None
        if brief.place is not None:
            self._mirror = MirroredStore(folder, brief, self.news)
        self.heard_at = time.monotonic()
        """When the client last called."""
        self.is_over = threading.Event()
        link, hear = replace(brief.link, driver=(host, 0)), self._add_event
        super().__init__(
            link, self._initial_weights, self._mirror, hear, brief.resume, brief.elastic
        )

    def _add_event(self, event: Event) -> None:
        self.news.add("event", json.dumps(event))

    def is_forgotten(self) -> bool:
        """Return whether the client is lost; before, have the workers of a silent client end."""
        deadlines = (time.monotonic() - self.heard_at) / self.deadline
        if deadlines > 2:
            self.interrupt()
        return deadlines > (2 if self.progress.outcome is not None else 3)

    def _upload(self, call: dict[str, Any], line: Line) -> Answer:
        """Write a piece of a file that the client sends; twice is as good as once."""
        path = self._uploads / Path(str(call["name"])).name
        size, place = int(call["size"]), int(call["place"])
        with path.open("r+b" if path.exists() else "wb") as file:
            file.seek(place)
            for chunk in line.chunks(size):
                file.write(chunk)
        return {}, b""

    def _ready(self, call: dict[str, Any], line: Line) -> Answer:
        """Take what was uploaded: the first weights, and the snapshot to resume."""
        weights = self._uploads / WEIGHTS
        self._initial_weights[:] = weights.read_bytes()
        weights.unlink()
        if call["round"] is not None and self._mirror is not None:
            self._mirror.restore(int(call["round"]), self._uploads)
        shutil.rmtree(self._uploads)
        return {}, b""

    def _news_after(self, call: dict[str, Any], line: Line) -> Answer:
        """Return the first row that the client has not."""
        self.heard_at = time.monotonic()
        self._stop = self._stop or bool(call["stop"])
        row = self.news.after(int(call["after"]), float(call["waits"]))
        if row is None:
            return {"number": None}, b""
        return {"number": row.number, "kind": row.kind, "text": row.text}, row.data()

    def _state(self, call: dict[str, Any], line: Line) -> Answer:
        """Return what the client's side asks its driver."""
        members, progress = self.members, self.progress
        state = {
            "present": self.present,
            "called": self._training.entered(),
            "standstill": self.standstill(),
            "trouble": self.trouble,
            "starts": progress.starts,
            "failures": list(progress.failures),
        }
        if members is not None:
            members.leave_behind()
            loss = members.loss
            state |= {
                "gone": members.departures(),
                "lost": None if loss is None else [loss.rank, loss.where, loss.what],
            }
        return state, b""

    def _end(self, call: dict[str, Any], line: Line) -> Answer:
        self.is_over.set()
        return {}, b""

    def _done(self, call: dict[str, Any], line: Line) -> Answer:
        answer = super()._done(call, line)
        assert self.progress.weights is not None
        self.news.add_file("weights", WEIGHTS, memoryview(self.progress.weights))
        self.news.add("done", json.dumps(call["outcome"]))
        return answer

    _CALLS: ClassVar[dict[str, Callable[[Any, dict[str, Any], Line], Answer]]] = {
        **Driver._CALLS,
        "done": _done,
        "upload": _upload,
        "ready": _ready,
        "news": _news_after,
        "state": _state,
        "end": _end,
    }


def hold(batches: Iterable[pa.RecordBatch], brief: Brief) -> Iterator[pa.RecordBatch]:
    """Hold the meeting point in the second task; the first one yields its address and ends."""
    import pyarrow as pa
    from pyspark import BarrierTaskContext

    for _ in batches:
        pass
    if BarrierTaskContext.get().partitionId() == 0:
        host, port = json.loads(gathered("")[1][1])
        yield pa.RecordBatch.from_pydict({"host": [host], "port": pa.array([port], pa.int32())})
        return
    host = task_host()
    name = f"meeting-{brief.link.run}"
    with scratch(name) as folder, closing(_open(brief, folder, host)) as point:
        gathered(json.dumps([host, point.link.driver[1]]))
        while not (point.is_over.wait(1.0) or point.is_forgotten()):
            pass


def _open(brief: Brief, folder: Path, host: str) -> MeetingPoint:
    try:
        return MeetingPoint(brief, folder, host)
    except CommError:  # a container's address as seen from outside
        return MeetingPoint(brief, folder, "")


def exchange(
    batches: Iterable[pa.RecordBatch], link: Link, after: int, stop: bool, calls: Sequence[Any]
) -> Iterator[pa.RecordBatch]:
    """Bring the rows and calls of the client to the meeting point; yield its news, then its state.

    ``after`` is the number of the last row that the client has.
    """
    import pyarrow as pa

    with closing(link.dial(_RANK)) as line:
        for batch in batches:
            for row in batch.to_pylist() if "data" in batch.schema.names else ():
                data = memoryview(row["data"])
                arguments = {"name": row["name"], "place": row["place"], "size": data.nbytes}
                line.call("upload", [data], **arguments)
        for name, arguments in calls:
            line.call(name, **arguments)
        spent, waits = 0, 0.0 if calls else 1.0
        while spent < _MOST:
            answer, payload = line.call("news", after=after, waits=waits, stop=stop)
            if answer["number"] is None:
                break
            text, after, waits = answer["text"], answer["number"], 0.0
            spent += len(payload) + len(text)
            yield _row(pa, after, answer["kind"], text, bytes(payload))
        state, _ = line.call("state")
        yield _row(pa, after, "state", json.dumps(state), b"")


def _row(pa: Any, number: int, kind: str, text: str, data: bytes) -> Any:
    columns = {"number": [number], "kind": [kind], "text": [text], "data": [data]}
    return pa.RecordBatch.from_pydict(columns)
