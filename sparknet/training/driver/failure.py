"""Failures: a worker's error as JSON, and as the exception that the run raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparknet import errors
from sparknet.errors import CommError, SparkNetError, WorkerError, bare


@dataclass(frozen=True)
class Failure:
    """The error that a worker reported before it ended."""

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
    """Return the first error that is a cause; losing a peer is only a consequence of one."""
    causes = (one.error for one in failures if not isinstance(one.error, CommError))
    return next(causes, None)


def failure(error: BaseException) -> dict[str, str]:
    """Return an error as JSON, by the nearest of its types that sparknet names."""
    kinds = [kind for kind in type(error).__mro__ if vars(errors).get(kind.__name__) is kind]
    return {"type": (kinds or [type(error)])[0].__name__, "message": str(error)}


def error_of(
    said: Mapping[str, Any], worker: int, otherwise: type[SparkNetError] = WorkerError
) -> SparkNetError:
    """Return the exception with the worker's number, of its own type if sparknet has that."""
    kind = getattr(errors, str(said["type"]), None)
    message = str(said["message"])
    if not (isinstance(kind, type) and issubclass(kind, SparkNetError)):
        kind, message = otherwise, f"{said['type']}: {message}"
    return bare(kind, f"{message} (worker {worker})")
