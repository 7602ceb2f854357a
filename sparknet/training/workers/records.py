"""The records of one worker, its place among the workers, and what all workers have together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.comm.collectives import Comm
from sparknet.errors import DataError
from sparknet.loaders.records import ArrayRecords, Records, Subset
from sparknet.net.model import Model
from sparknet.training.schedule import Validate

if TYPE_CHECKING:
    from sparknet.training.workers.host_memory import HostMemory


@dataclass(frozen=True)
class WorkerPlace:
    """The rank and the place of one worker."""

    rank: int
    size: int
    host: str
    folder: Path
    """The folder of its files."""
    device: int | None = None
    """The number of its GPU, or CPU, for a backend that can choose; None where nobody says."""
    number: int = 0
    """The number of the host that carries it."""
    memory: HostMemory | None = None
    """That of the host, where hosts come and go."""

    @property
    def where(self) -> str:
        return f"{self.host} (process {os.getpid()})"


@dataclass(frozen=True)
class WorkerRecords:
    """The records of one worker."""

    training: Records
    validation: Records | None
    check_sum: int = 0
    """The check sum of the training records; 0 if the driver computes it."""
    is_whole: bool = False
    """Whether every worker holds all records and trains on its share of them."""
    dropped: int = 0
    """The rows that were left out, because they cannot be read."""
    reason: str | None = None
    """What is wrong with the first of them."""
    outlier: str | None = None
    """A sentence about a value that is far beyond those of the first rows."""


def introduced(
    comm: Comm,
    part: WorkerRecords,
    validates: bool,
    met: Sequence[Sequence[Any]],
    computes: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return all workers with their numbers of records and engines, for an event."""
    shares = [_share(part, one, comm) for one in (part.training, part.validation)]
    counted = not part.is_whole or comm.rank == 0  # else all would count the same rows
    dropped = part.dropped if counted else 0
    counts = comm.gather([*shares, dropped, part.reason, part.outlier, dict(computes)])
    for number, what in enumerate(("training", "validation")[: 1 + validates]):
        if not any(count[number] for count in counts):
            raise DataError(f"the {what} data has no records{_why_none(counts)}")
    return [
        {
            "host": host,
            "process": process,
            "records": records,
            "held_out": held_out,
            "dropped": dropped,
            "reason": reason,
            "outlier": outlier,
            **how,
        }
        for (host, _, process), (records, held_out, dropped, reason, outlier, how) in zip(
            met, counts, strict=True
        )
    ]


def agreed(comm: Comm, part: WorkerRecords) -> int:
    """Return the check sum of all workers' records; DataError if they are not the same."""
    if len({(one[0], one[1]) for one in comm.gather([part.check_sum, len(part.training)])}) > 1:
        raise DataError(
            "the workers have read different records: the DataFrame's rows differ each time that "
            "Spark computes them; write them to files, or use checkpoint()"
        )
    return part.check_sum


def _why_none(counts: Sequence[Any]) -> str:
    dropped = sum(count[2] for count in counts)
    reason = next((count[3] for count in counts if count[3]), None)
    return f": {dropped} rows were dropped; {reason}" if dropped else ""


def _span(part: WorkerRecords, records: Records | None, comm: Comm) -> tuple[int, int]:
    """This worker's share of its records."""
    count = 0 if records is None else len(records)
    if not part.is_whole:
        return 0, count
    return count * comm.rank // comm.size, count * (comm.rank + 1) // comm.size


def _share(part: WorkerRecords, records: Records | None, comm: Comm) -> int:
    begin, end = _span(part, records, comm)
    return end - begin


def share_of(part: WorkerRecords, records: Records | None, comm: Comm) -> Records | None:
    """Return the records themselves of this worker's share; None if there are none."""
    begin, end = _span(part, records, comm)
    if records is None or begin == end:
        return None
    return Subset(records, slice(begin, end)) if part.is_whole else records


def validation(model: Model, part: WorkerRecords, comm: Comm, metrics: Sequence[str]) -> Validate:
    """Return a function that validates on this worker's share of the validation records."""
    mine = share_of(part, part.validation, comm)
    if mine is not None:
        model.set_validation_data(mine)

    def measure() -> tuple[int, dict[str, float]]:
        means = model.measure(metrics, partial(_all_rows, comm))
        return 0 if mine is None else len(mine), means

    return measure


def _all_rows(comm: Comm, mine: Any) -> Any:
    """Return the rows of float32 of all workers; None for a worker that has none."""
    own = np.zeros((0, 0), np.float32) if mine is None else np.ascontiguousarray(mine, np.float32)
    parts = []
    for rank, shape in enumerate(comm.gather(list(own.shape))):
        rows = own if rank == comm.rank else np.zeros(shape, np.float32)
        if rows.size:
            comm.broadcast_bytes(rows.data.cast("B"), rank)
            parts.append(rows)
    return np.concatenate(parts) if parts else own


def gathered(comm: Comm, mine: Records) -> Records:
    """Return all workers' records, where there are too few for every worker to have some."""
    columns = {name: (one.dtype.str, list(one.shape)) for name, one in mine.columns.items()}
    listed = comm.gather({"columns": columns, "count": len(mine)})
    columns = next(one["columns"] for one in listed if one["count"])
    columns_here = mine.take(slice(0, len(mine)))
    parts: dict[str, list[Any]] = {name: [] for name in columns}
    for rank, one in enumerate(listed):
        for name, (dtype, shape) in columns.items():
            if not one["count"]:
                continue
            rows = np.zeros((one["count"], *shape), dtype)
            if rank == comm.rank:
                rows[:] = columns_here[name]
            comm.broadcast_bytes(rows.data.cast("B"), rank)
            parts[name].append(rows)
    return ArrayRecords(**{name: np.concatenate(rows) for name, rows in parts.items()})
