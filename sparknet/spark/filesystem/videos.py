"""Videos as DataFrames: a row for each frame."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.loaders.image_decoding import encode
from sparknet.loaders.videos import VideoFrame, video_frames, video_seconds
from sparknet.predict.prediction import in_one_line
from sparknet.proto.byte_source import StrPath
from sparknet.proto.suggest import one_of
from sparknet.spark.cluster.by_value import by_value

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

IMAGE = (
    "struct<origin string, height int, width int, nChannels int, mode int, data binary>"  # Spark's
)
COLUMNS = {
    "path": "string",
    "index": "long",
    "seconds": "double",
    "image": IMAGE,
    "content": "binary",
}
"""The columns of `read_videos` and their types."""
_AT_ONCE = 16 << 20
"""Bytes of frames in one Arrow batch."""
_BYTES_BGR = 16
"""OpenCV's number for three channels of bytes."""


def read_videos(
    session: SparkSession,
    paths: StrPath | Sequence[StrPath],
    every: float | None = None,
    columns: Sequence[str] = ("path", "index", "seconds", "image"),
    span: float = 60.0,
) -> DataFrame:
    """Return the frames of videos, a row each, with their times.

    ``every`` is the time between two frames, in seconds; all frames unless given.  ``columns``
    are of path, index, seconds, image (Spark's image struct) and content (a JPEG); `SparkModel`
    takes both kinds of pictures.  A task decodes some ``span`` seconds of a video, from the key
    frame before them.  The driver and every executor must reach the files by the same path, and
    have PyAV or OpenCV (``pip install 'sparknet[video]'``).
    """
    for name in columns:
        if name not in COLUMNS:
            raise SparkError(f"read_videos has no column '{name}'{one_of(name, COLUMNS)}")
    for name, seconds in (("every", every), ("span", span)):
        if seconds is not None and not 0 < seconds < math.inf:
            raise SparkError(f"{name} is {seconds!r}: seconds above 0 are needed")
    names = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    files = [str(Path(path).absolute()) for path in names]
    spans = [one for file in files for one in _spans(file, every, span)]
    if not spans:
        raise SparkError("read_videos needs the path of a video")
    rows = session.createDataFrame(spans, "path string, begin double, end double")
    reader = by_value(partial(_read, every=every, columns=tuple(columns)))
    schema = ", ".join(f"`{name}` {COLUMNS[name]}" for name in columns)
    return rows.coalesce(1).repartition(len(spans)).mapInArrow(reader, schema)


def _spans(path: str, every: float | None, span: float) -> Iterator[tuple[str, float, float]]:
    """Yield the parts of a video; each begins where a frame of ``every`` seconds may."""
    seconds = video_seconds(path)
    step = float(span if every is None else every * max(1, round(span / every)))
    count = max(1, math.ceil(seconds / step - 1e-6))
    for number in range(count):
        yield path, number * step, math.inf if number == count - 1 else (number + 1) * step


def _read(
    batches: Iterable[pa.RecordBatch], every: float | None, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    with in_one_line():
        for batch in batches:
            for part in batch.to_pylist():
                frames, size = list[VideoFrame](), 0
                for frame in video_frames(part["path"], part["begin"], part["end"], every):
                    frames.append(frame)
                    size += frame.pixels.nbytes
                    if size >= _AT_ONCE:
                        yield _batch(part["path"], frames, columns)
                        frames, size = [], 0
                if frames:
                    yield _batch(part["path"], frames, columns)


def _batch(path: str, frames: Sequence[VideoFrame], columns: Sequence[str]) -> pa.RecordBatch:
    import pyarrow as pa

    makers = {
        "path": lambda: pa.array([path] * len(frames)),
        "index": lambda: pa.array([frame.index for frame in frames], pa.int64()),
        "seconds": lambda: pa.array([frame.seconds for frame in frames], pa.float64()),
        "image": lambda: _images(path, frames),
        "content": lambda: pa.array(
            [encode(frame.pixels.transpose(2, 0, 1), "jpg", path) for frame in frames], pa.binary()
        ),
    }
    return pa.RecordBatch.from_pydict({name: makers[name]() for name in columns})


def _images(path: str, frames: Sequence[VideoFrame]) -> Any:
    import pyarrow as pa

    shapes = [frame.pixels.shape for frame in frames]
    fields = {
        "origin": pa.array([f"{path}:{frame.seconds:.3f}" for frame in frames]),
        "height": pa.array([shape[0] for shape in shapes], pa.int32()),
        "width": pa.array([shape[1] for shape in shapes], pa.int32()),
        "nChannels": pa.array([3] * len(frames), pa.int32()),
        "mode": pa.array([_BYTES_BGR] * len(frames), pa.int32()),
        "data": pa.array([frame.pixels.tobytes() for frame in frames], pa.binary()),
    }
    return pa.StructArray.from_arrays([*fields.values()], names=[*fields])
