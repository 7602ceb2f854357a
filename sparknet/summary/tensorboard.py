"""TensorBoard: writes the events as scalars to an event file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sparknet.errors import FileError, MissingExtra
from sparknet.summary.events import Event, number, seconds, share_communicating


class TensorBoard:
    """A listener that writes to a folder for ``tensorboard --logdir``."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer = _writer(os.fspath(folder))

    def __call__(self, event: Event) -> None:
        for name, value in _scalars(event).items():
            if value is not None:
                self._writer.add_scalar(name, value, int(event["iteration"]))

    def close(self) -> None:
        self._writer.close()


def _writer(folder: str) -> Any:
    try:
        from tensorboard.summary import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            Writer,
        )
    except ImportError as error:
        raise MissingExtra("tensorboard", "tensorboard", "a TensorBoard log") from error
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return Writer(folder)
    except OSError as error:
        raise FileError(folder, f"cannot be written: {error.strerror}") from error


def _scalars(event: Event) -> dict[str, float | None]:
    if event["event"] == "validation":
        return {f"validation/{name}": float(value) for name, value in event["metrics"].items()}
    if event["event"] != "round":
        return {}
    samples, taken = number(event, "samples"), seconds(event)
    return {
        "train/loss": number(event, "loss"),
        "train/samples_per_second": samples / taken if samples is not None and taken else None,
        "train/share_communicating": share_communicating(event),
        "train/bytes_sent": number(event, "bytes_sent"),
        "train/divergence": number(event, "divergence"),
        "train/learning_rate": number(event, "rate"),
        **_of_workers(event),
    }


def _of_workers(event: Event) -> dict[str, float | None]:
    """Each worker's times."""
    return {
        f"worker {rank}/{name}": number(worker, name)
        for rank, worker in enumerate(event.get("workers", ()))
        for name in worker
        if name.startswith("seconds_")
    }
