"""Failures: a worker's error as it travels, and as it is raised where its run was started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparknet import errors
from sparknet.errors import CommError, SparkNetError, WorkerError, bare


@dataclass(frozen=True)
class Failure:
    """What a worker said before it ended."""

    worker: int
    error: SparkNetError

    @classmethod
    def of(cls, said: Mapping[str, Any], otherwise: type[SparkNetError] = WorkerError) -> Failure:
        worker = int(said["worker"])
        error = error_of(said, worker, otherwise)
        if trace := said.get("trace"):
            error.__cause__ = RuntimeError(str(trace))
        return cls(worker, error)


def first_cause(failures: Sequence[Failure]) -> SparkNetError | None:
    """The cause among what workers said: losing a peer is what follows from it."""
    causes = (one.error for one in failures if not isinstance(one.error, CommError))
    return next(causes, None)


def failure(error: BaseException) -> dict[str, str]:
    """An error as JSON."""
    return {"type": type(error).__name__, "message": str(error)}


def error_of(
    said: Mapping[str, Any], worker: int, otherwise: type[SparkNetError] = WorkerError
) -> SparkNetError:
    """An error of its own type where that is one of sparknet's, with the worker's number."""
    kind = getattr(errors, str(said["type"]), None)
    message = str(said["message"])
    if not (isinstance(kind, type) and issubclass(kind, SparkNetError)):
        kind, message = otherwise, f"{said['type']}: {message}"
    return bare(kind, f"{message} (worker {worker})")
