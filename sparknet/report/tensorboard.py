"""TensorBoard: the events as scalars and histograms in an event file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, extra
from sparknet.training.history import (
    KINDS,
    Event,
    blob_name,
    edges,
    number,
    seconds,
    share_communicating,
)


class TensorBoard:
    """A listener that writes to a folder for ``tensorboard --logdir``."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._writer, self._events, self._summaries, self._tensor = _writer(os.fspath(folder))

    def __call__(self, event: Event) -> None:
        plugins = {
            "scalars": {
                name: np.float32(value)
                for name, value in _numbers(event).items()
                if value is not None
            },
            "histograms": dict(_histograms(event)),
        }
        values = [
            self._value(plugin, name, value)
            for plugin, scalars in plugins.items()
            for name, value in scalars.items()
        ]
        if values:
            summary = self._summaries.Summary(value=values)
            at, step = event.get("time") or time.time(), int(event["iteration"])
            self._writer.add_event(self._events.Event(wall_time=at, step=step, summary=summary))

    def close(self) -> None:
        self._writer.close()

    def _value(self, plugin: str, name: str, value: Any) -> Any:
        schema, is_scalar = self._summaries, plugin == "scalars"
        about = schema.SummaryMetadata(
            plugin_data=schema.SummaryMetadata.PluginData(plugin_name=plugin),
            data_class=schema.DATA_CLASS_SCALAR if is_scalar else schema.DATA_CLASS_TENSOR,
        )
        return schema.Summary.Value(tag=name, metadata=about, tensor=self._tensor(value))


def _writer(folder: str) -> tuple[Any, Any, Any, Any]:
    """Return a writer of events, the modules of their messages, and what makes tensors of
    arrays.
    """
    with extra("tensorboard", "tensorboard", "a TensorBoard log"):
        from tensorboard.compat.proto import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            event_pb2,
            summary_pb2,
        )
        from tensorboard.summary.writer.event_file_writer import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            EventFileWriter,
        )
        from tensorboard.util.tensor_util import (  # type: ignore[import-untyped,import-not-found,unused-ignore]
            make_tensor_proto,
        )
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return EventFileWriter(folder), event_pb2, summary_pb2, make_tensor_proto
    except OSError as error:
        raise FileError(folder, f"cannot be written: {error.strerror}") from error


def _numbers(event: Event) -> dict[str, float | None]:
    if event["event"] == "validation":
        return {f"validation/{name}": float(value) for name, value in event["metrics"].items()}
    if event["event"] == "layers":
        return {
            f"norm of {kind}/{blob_name(one)}": number(one[kind], "norm")
            for one in event["parameters"]
            for kind in KINDS
        }
    if event["event"] != "round":
        return {}
    samples, duration = number(event, "samples"), seconds(event)
    return {
        "train/loss": number(event, "loss"),
        "train/samples_per_second": samples / duration
        if samples is not None and duration
        else None,
        "train/share_communicating": share_communicating(event),
        "train/bytes_sent": number(event, "bytes_sent"),
        "train/divergence": number(event, "divergence"),
        "train/learning_rate": number(event, "rate"),
        **_of_workers(event),
    }


def _of_workers(event: Event) -> dict[str, float | None]:
    """Return each worker's times."""
    return {
        f"worker {rank}/{name}": number(worker, name)
        for rank, worker in enumerate(event.get("workers", ()))
        for name in worker
        if name.startswith("seconds_")
    }


def _histograms(event: Event) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield a row for each bin: where it begins and ends, and its count."""
    for one in event["parameters"] if event["event"] == "layers" else ():
        for kind in KINDS:
            ends = edges(one[kind])
            rows = np.array([ends[:-1], ends[1:], one[kind]["counts"]], np.float64)
            yield f"{kind}/{blob_name(one)}", rows.T
