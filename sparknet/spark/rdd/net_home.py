"""Homes: where nets of `net_rdd` live between jobs, and what a Python worker does with them.

A net stays in the Python worker that had it last, and its state is written to a folder of the
executor at the end of each job.  So any process of the executor can go on with it.
"""

from __future__ import annotations

import os
import pickle
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SparkError
from sparknet.net import Net
from sparknet.net.scratch import PRIVATE_FOLDER, private
from sparknet.predict.worker_cache import cached, clear_cache
from sparknet.spark.filesystem.scratch import local_directory
from sparknet.weights import WeightCollection

if TYPE_CHECKING:
    from pyspark import Accumulator, Broadcast


from sparknet.errors import DataError, SpecError

State = dict[str, Any]


def state_of(net: Net) -> State:
    """Return weights, histories, iteration, random numbers and cursor, as views of the net."""
    if not net.backend.is_embedded:
        raise SpecError(
            f"backend '{net.backend.name}' does not give its solver's state: use 'embedded'"
        )
    fed = net._nets.main
    if fed.rows is None and net.taken:
        raise DataError(
            "the net was trained on the files of its own data layers, whose cursor is not known: "
            "call set_training_data"
        )
    position = fed._stream.position if fed._stream else fed._skip
    state: State = {"weights": np.asarray(net.net.flat_params)}
    state["cursor"] = fed._seed, fed.taken, position
    state["random"] = net.net.random_state
    if net.solver is not None:
        state["histories"] = [np.asarray(history) for history in net.solver.flat_history]
        state["iteration"] = net.solver.position
    return state


def restore(net: Net, state: State) -> None:
    """Continue from another net's state; what the state lacks stays as it is."""
    if "weights" in state:
        net.net.flat_params.copy_from(state["weights"])
    if "random" in state:
        net.net.random_state = state["random"]
    if net.solver is not None and "iteration" in state:
        net.solver.seek(*state["iteration"])
        histories = state.get("histories", ())
        for mine, stored in zip(net.solver.flat_history, histories, strict=bool(histories)):
            mine.copy_from(stored)
    fed = net._nets.main
    fed._seed, fed.taken, fed._skip = state["cursor"]
    fed._stream = None


Step = Callable[[Net], Any]

_PLACE = ("iteration", "cursor")
"""What the driver keeps of a net's state."""


@dataclass(frozen=True)
class NetStatus:
    """The history of a partition's net."""

    partition: int
    process: str
    """The host and the process that had it last."""
    iteration: int = 0
    records: int = 0
    """The records that it was trained on."""
    built: int = 0
    """How often a process built it."""
    moved: int = 0
    """How often a process went on from the state that another one wrote."""
    lost: int = 0
    """How often it was built without its state, and began from the last mean."""


@dataclass(frozen=True)
class NetReport:
    """What a task tells the driver of its net."""

    status: NetStatus
    place: State | None
    """The net's state without its arrays; None if the steps were not made."""
    has_home: bool = True


class StoredRecords:
    """The records of a partition in a file: they can be iterated repeatedly, from any record on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offsets = np.load(path.with_suffix(".npy"))

    @classmethod
    def write(cls, path: Path, records: Iterable[Any]) -> None:
        """Write one pickle after the other, and their offsets last."""
        offsets = []
        with open(path, "wb", opener=private) as file:
            for record in records:
                offsets.append(file.tell())
                pickle.dump(record, file, pickle.HIGHEST_PROTOCOL)
        draft = path.with_suffix(".draft.npy")
        np.save(draft, np.array(offsets, np.int64))
        draft.rename(path.with_suffix(".npy"))

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Any]:
        return self.starting(0)

    def starting(self, number: int) -> Iterator[Any]:
        """Iterate over the records from one of them on."""
        if number >= len(self):
            return
        with self.path.open("rb") as file:
            file.seek(self._offsets[number])
            for _ in range(number, len(self)):
                yield pickle.load(file)


@dataclass(frozen=True)
class NetHome:
    """A folder of an executor with the records and the newest states of a partition's net."""

    part: int
    folder: str

    @classmethod
    def settle(cls, name: str, part: int, records: Iterable[Any]) -> NetHome:
        """Write a partition's records to its folder, unless they are there already."""
        home = cls(part, str(local_directory() / f"nets-{name}-{part}"))
        Path(home.folder).mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        if home.records.with_suffix(".npy").exists():
            for _ in records:  # Spark ends a Python worker that leaves records unread
                pass
        else:
            StoredRecords.write(home.records, records)
        return home

    @property
    def records(self) -> Path:
        return Path(self.folder, "records")

    def read(self, number: int) -> State | None:
        """Return the state behind a step; None if there is none."""
        with suppress(OSError), self._state(number).open("rb") as file:
            state: State = pickle.load(file)
            return state
        return None

    def write(self, number: int, state: State, begin: int) -> None:
        """Write the state behind a step; that behind ``begin`` stays for a task that runs again."""
        draft = self._state(number).with_suffix(f".{os.getpid()}")
        with open(draft, "wb", opener=private) as file:
            pickle.dump(state, file, pickle.HIGHEST_PROTOCOL)
        draft.rename(self._state(number))
        for path in Path(self.folder).glob("state-*"):
            if path.name[6:].isdecimal() and int(path.name[6:]) < begin:
                path.unlink(missing_ok=True)

    def _state(self, number: int) -> Path:
        return Path(self.folder, f"state-{number}")


class _WorkerNet:
    """A net in a Python worker, and the number of the last step that it made."""

    net: Net | None = None
    number = 0


@dataclass(frozen=True)
class NetJob:
    """The steps of one job, for nets that stand behind the step ``begin``."""

    name: str
    make: Callable[[StoredRecords], Net]
    begin: int
    steps: list[tuple[int, Step]]
    places: Mapping[int, State | None]
    """Where the nets stood after the last job, by partition."""
    last: Broadcast[WeightCollection] | None
    builds_lost: bool
    report: Accumulator[Any]

    def __call__(self, homes: Iterable[NetHome]) -> Iterator[Any]:
        for home in homes:
            key = (self.name, home.part)
            try:
                report, result = self._act(home, cached(key, _WorkerNet))
            except BaseException:
                clear_cache(key)
                raise
            self.report.add({home.part: report})
            if report.place is not None:
                yield result

    def _act(self, home: NetHome, seat: _WorkerNet) -> tuple[NetReport, Any]:
        status = NetStatus(home.part, f"{socket.gethostname()}:{os.getpid()}")
        history = self._prepare(home, seat)
        if history is None or seat.net is None:
            return NetReport(status, None, home.records.exists()), None
        net, result = seat.net, None
        rows = net._nets.main.rows
        for _, step in self.steps:
            result = step(net)
        if net._nets.main.rows is not rows:
            raise SparkError("call set_training_data in make: other processes would not have it")
        seat.number = self.steps[-1][0]
        state = state_of(net)
        home.write(seat.number, state, self.begin)
        place: State = {name: state[name] for name in _PLACE if name in state}
        numbers: Any = {"iteration": net.iter, "records": net.taken, **history}
        status = replace(status, **numbers)
        return NetReport(status, place), result

    def _prepare(self, home: NetHome, seat: _WorkerNet) -> dict[str, int] | None:
        """Have the seat's net stand behind the step ``begin``.

        Return what `NetStatus` counts; None if the net is lost and may not be built.
        """
        if seat.net is not None and seat.number == self.begin > 0:
            return {}
        state = home.read(self.begin) if self.begin else None
        is_lost = self.begin > 0 and state is None
        if not home.records.exists() or (is_lost and not self.builds_lost):
            return None
        if state is not None:
            built = int(seat.net is None)
            seat.net = seat.net or self._build(home)
            restore(seat.net, state)
            return {"built": built, "moved": 1}
        seat.net = self._build(home)
        if is_lost and self.last is not None:
            seat.net.set_weights(self.last.value)
        if is_lost and (place := self.places.get(home.part)):
            restore(seat.net, place)
        return {"built": 1, "lost": int(is_lost)}

    def _build(self, home: NetHome) -> Net:
        records = StoredRecords(home.records)
        if not len(records):
            raise SparkError(
                f"partition {home.part} of the data has no records for its net: repartition it"
            )
        net = self.make(records)
        if not isinstance(net, Net):
            raise SparkError(f"make returned a {type(net).__name__}: it has to return a Net")
        return net
