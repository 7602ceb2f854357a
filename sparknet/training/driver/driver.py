"""The driver's end of a run: events, snapshots and weights come here while the job runs.

Workers call it over authenticated TCP connections; the answers are JSON objects, and bytes
where bytes are asked for.  Nothing that comes over a connection is unpickled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sparknet.comm.handshake import DRIVER, PREFLIGHT
from sparknet.comm.rpc import Gate, Line, Link
from sparknet.comm.wire import Silent
from sparknet.errors import CommError, PeerLost
from sparknet.training.checkpoints.store import Buffer, Store
from sparknet.training.driver.failure import Failure, failure
from sparknet.training.driver.membership import Elastic, Membership
from sparknet.training.driver.rendezvous import Rendezvous, Standstill
from sparknet.training.events import Event, OnEvent

Answer = tuple[dict[str, Any], Buffer]

_NOTHING: Buffer = b""
LARGEST_FILE = 1 << 40


@dataclass
class RunProgress:
    """What the driver knows of a run."""

    starts: int = 0
    """How often all workers were ready together: more than once after a failure."""
    weights: bytearray | None = None
    """The trained weights, once they have arrived."""
    outcome: dict[str, Any] | None = None
    """How training ended."""
    failures: list[dict[str, Any]] = field(default_factory=list)
    """The errors that workers reported before they ended, in order of arrival."""
    broken: Exception | None = None
    """The exception of the event listener, which gets no further events."""


class Driver:
    """Serves a run's workers until it is closed."""

    def __init__(
        self,
        link: Link,
        weights: memoryview,
        store: Store | None,
        on_event: OnEvent,
        resume: bool = False,
        elastic: Elastic | None = None,
    ) -> None:
        """``link`` has the address to listen on, and afterwards the port.

        ``elastic`` lets hosts go and come; else all that begin are needed to the end.
        """
        self._weights, self._store, self._on_event = weights, store, on_event
        self._resume = resume
        self._stop = False
        self._saved = False
        self._lock = threading.Lock()
        self.progress = RunProgress()
        self.members: Membership | None = None
        if elastic is not None:
            self.members = Membership(elastic, self.begin_attempt, self.hear, self._is_over)
        self._training = self.members or Rendezvous(self.begin_attempt)
        self._places: dict[str, Rendezvous | Membership] = {
            "preflight": Rendezvous(),
            "aside": Rendezvous(),
            "training": self._training,
        }
        self.deadline = link.deadline
        self._gate = Gate(link, self._serve)
        self.link = replace(link, driver=(link.driver[0], self._gate.port))

    @property
    def trouble(self) -> tuple[float, str]:
        """The seconds for which no worker could connect, and why; 0 where all is well."""
        return self._gate.trouble

    @property
    def present(self) -> int:
        """How many workers of the attempt at work are connected."""
        return self._training.present

    def has_called(self, worker: int) -> bool:
        """Return whether a worker has ever called, so that its line is watched; where hosts change,
        whether a host has, by its number."""
        return worker in self._training.entered()

    def standstill(self) -> Standstill | None:
        """Return what the workers do, if none of them has got on for the deadline."""
        return self._training.standstill(self.deadline)

    def interrupt(self) -> None:
        """Ask the workers to write a snapshot and end after the current round."""
        self._stop = True

    def close(self) -> None:
        """Close the port and all connections, and wait for their threads."""
        self._gate.close()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what workers ask ----------------------------------------------------------------

    def _serve(self, line: Line) -> None:
        """Answer the calls of one worker until it hangs up."""
        try:
            while (call := line.receive()) is not None:
                name = str(call.get("call"))
                if name not in self._CALLS or (line.purpose == PREFLIGHT and name != "here"):
                    return
                line.is_serving = True
                try:
                    answer, payload = self.answer(call, line)
                except Silent:
                    raise
                except OSError as error:
                    answer, payload = {"error": str(error)}, _NOTHING
                finally:
                    line.is_serving = False
                line.send(answer, payload)
        except Silent:
            self._miss(line)
            raise
        finally:
            for place in self._places.values():
                place.leave(line)

    def answer(self, call: dict[str, Any], line: Line) -> Answer:
        """Do what a call asks for; return its answer."""
        return self._CALLS[call["call"]](self, call, line)

    def _miss(self, line: Line) -> None:
        """Report a worker that is silent, as it cannot do so itself."""
        loss = self._training.miss(line, f"no heartbeat for {self.deadline:g} s")
        if loss is not None and self.members is None and self.progress.outcome is None:
            report = {"worker": line.rank, **failure(PeerLost(*loss))}
            self.progress.failures.append(report)
            self._tell(report)

    def _tell(self, said: dict[str, Any]) -> None:
        self.hear({"event": "failure", "time": time.time(), **said})

    def _here(self, call: dict[str, Any], line: Line) -> Answer:
        """Answer a worker that waits for the others."""
        place = str(call["place"])
        if (place == "training") != (line.purpose == DRIVER):
            raise OSError(f"a line of another purpose cannot meet others at '{place}'")
        return self._places[place].hear(line, call), _NOTHING

    def begin_attempt(self) -> dict[str, Any]:
        """Start an attempt, when all workers are ready; returns its number and first snapshot.

        The store holds snapshots of this run alone.
        """
        if self.progress.outcome is not None:
            raise OSError("training is over")
        again = self.progress.starts > 0
        self.progress.starts += 1
        newest = None
        if self._store is not None:
            self._store.clean()
            rounds = self._store.rounds() if again or self._resume else ()
            newest = rounds[-1] if rounds else None
        return {"resume": newest, "own": self._saved, "attempt": self.progress.starts}

    def _initial(self, call: dict[str, Any], line: Line) -> Answer:
        return {}, self._weights

    def _event(self, call: dict[str, Any], line: Line) -> Answer:
        self.hear(call["event"])
        return {}, _NOTHING

    def hear(self, event: Event) -> None:
        """Pass on one event at a time; a listener that fails ends the run."""
        with self._lock:
            if self.progress.broken is not None:
                raise OSError(str(self.progress.broken))
            try:
                self._on_event(event)
            except Exception as error:
                self.progress.broken = error
                raise OSError(str(error)) from error

    def _interrupted(self, call: dict[str, Any], line: Line) -> Answer:
        return {"interrupted": self._stop}, _NOTHING

    def _failed(self, call: dict[str, Any], line: Line) -> Answer:
        if self.progress.broken is not None:  # a consequence of that error
            return {}, _NOTHING
        report = call["failure"]
        self._training.fail(line, str(report["message"]))
        if self.members is None or not isinstance(Failure.of(report).error, CommError):
            self.progress.failures.append(report)
            self._tell(report)
        return {}, _NOTHING

    def _is_over(self) -> bool:
        return self.progress.outcome is not None

    def _newcomers(self, call: dict[str, Any], line: Line) -> Answer:
        waiting = self.members is not None and self.members.has_newcomers()
        return {"newcomers": waiting}, _NOTHING

    def _carry(self, call: dict[str, Any], line: Line) -> Answer:
        """Tell a host which workers it carries."""
        assert self.members is not None
        workers = [int(worker) for worker in call["known"]]
        host = int(call["host"]), str(call["where"]), bool(call["leaves"])
        return self.members.carry(line, *host, workers), _NOTHING

    def _arrived(self, call: dict[str, Any], line: Line) -> Answer:
        assert self.members is not None
        self.members.arrive(line, int(call["round"]), float(call["seconds"]))
        return {}, _NOTHING

    def _done(self, call: dict[str, Any], line: Line) -> Answer:
        weights = bytearray(self._weights.nbytes)
        line.receive_into(memoryview(weights))
        self.progress.weights, self.progress.outcome = weights, call["outcome"]
        if self.members is not None:
            self.members.wake()
        return {}, _NOTHING

    def _use_store(self, call: dict[str, Any], line: Line) -> Answer:
        """Answer a call of `DriverStore`."""
        kind, round = str(call["call"]), int(call.get("round", 0))
        chunks = line.chunks(_size(call["size"])) if kind == "put" else iter(())
        try:
            store = self._store
            if store is None:
                raise OSError("this run keeps no snapshots")
            if kind == "put":
                store.put(round, _name(call["name"]), chunks)
            elif kind == "get":
                return {}, store.get(round, _name(call["name"]))
            elif kind == "path":
                name = str(call["name"])
                return {"path": store.path(round, name and _name(name))}, _NOTHING
            elif kind == "rounds":
                return {"rounds": list(store.rounds())}, _NOTHING
            elif kind == "clean":
                store.clean()
            else:
                {"begin": store.begin, "commit": store.commit, "drop": store.drop}[kind](round)
        finally:
            for _ in chunks:  # unread bytes would be taken for the next call
                pass
        self._saved |= kind == "commit"
        return {}, _NOTHING

    _CALLS: ClassVar[dict[str, Callable[[Driver, dict[str, Any], Line], Answer]]] = {
        "here": _here,
        "initial": _initial,
        "event": _event,
        "interrupted": _interrupted,
        "newcomers": _newcomers,
        "carry": _carry,
        "arrived": _arrived,
        "failed": _failed,
        "done": _done,
        **dict.fromkeys(
            ("put", "get", "begin", "commit", "drop", "clean", "rounds", "path"), _use_store
        ),
    }


def _size(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= LARGEST_FILE:
        raise OSError(f"a file of {value} bytes is refused")
    return value


def _name(value: Any) -> str:
    """Return a file's name; refuses one that leads out of its folder."""
    name = str(value)
    if not name or name.startswith(".") or "/" in name or "\\" in name or "\0" in name:
        raise OSError(f"a file called {name!r} is refused")
    return name


class DriverStore(Store):
    """A worker's view of the driver's store."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def begin(self, round: int) -> None:
        self._line.call("begin", round=round)

    def put(self, round: int, name: str, parts: Iterator[Buffer]) -> None:  # type: ignore[override]
        pieces = [memoryview(part).cast("B") for part in parts]
        size = sum(piece.nbytes for piece in pieces)
        self._line.call("put", pieces, round=round, name=name, size=size)

    def commit(self, round: int) -> None:
        self._line.call("commit", round=round)

    def rounds(self) -> list[int]:
        return [int(number) for number in self._line.call("rounds")[0]["rounds"]]

    def get(self, round: int, name: str) -> Buffer:
        return memoryview(self._line.call("get", round=round, name=name)[1])

    def drop(self, round: int) -> None:
        self._line.call("drop", round=round)

    def clean(self) -> None:
        self._line.call("clean")

    def path(self, round: int, name: str = "") -> str:
        return str(self._line.call("path", round=round, name=name)[0]["path"])
