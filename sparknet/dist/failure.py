"""Failures: a worker's error as it travels, and as it is raised where its run was started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparknet import errors
from sparknet.errors import SparkNetError, WorkerError, bare


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
