"""Videos as DataFrames: a row for each frame."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.loaders.image_decoding import encode
from sparknet.loaders.videos import VideoFrame, video_frames, video_seconds
from sparknet.predict.prediction import in_one_line
from sparknet.proto.byte_source import StrPath
from sparknet.proto.suggest import one_of
from sparknet.spark.cluster.by_value import by_value
from sparknet.spark.filesystem.record_batches import BATCH_BYTES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

IMAGE = (
    "struct<origin string, height int, width int, nChannels int, mode int, data binary>"  # Spark's
)
TYPES = {
    "path": "string",
    "index": "long",
    "seconds": "double",
    "image": IMAGE,
    "content": "binary",
}
"""The columns of frames and their types."""
COLUMNS = ("path", "index", "seconds", "image")
"""The columns unless others are asked for."""
Span = tuple[str, float, float]
"""A part of a video: its path, begin and end."""
_BYTES_BGR = 16
"""OpenCV's number for three channels of bytes."""


@dataclass(frozen=True)
class FrameReader:
    """Frames of videos as rows; SparkError for other columns, or seconds that are none."""

    columns: Sequence[str] = COLUMNS
    every: float | None = None
    span: float = 60.0

    def __post_init__(self) -> None:
        for name in self.columns:
            if name not in TYPES:
                raise SparkError(f"videos have no column '{name}'{one_of(name, TYPES)}")
        for name, seconds in (("every", self.every), ("span", self.span)):
            if seconds is not None and not 0 < seconds < math.inf:
                raise SparkError(f"{name} is {seconds!r}: seconds above 0 are needed")

    @property
    def schema(self) -> str:
        return ", ".join(f"`{name}` {TYPES[name]}" for name in self.columns)

    def spans(self, paths: Iterable[str]) -> list[Span]:
        """Return the parts of videos; each begins where a frame of ``every`` seconds may."""
        spans = list[Span]()
        every, span = self.every, self.span
        step = float(span if every is None else every * max(1, round(span / every)))
        for path in paths:
            count = max(1, math.ceil(video_seconds(path) / step - 1e-6))
            ends = [*(number * step for number in range(count)), math.inf]
            spans += [(path, *pair) for pair in pairwise(ends)]
        return spans

    def read(self, path: str, begin: float, end: float) -> Iterator[pa.RecordBatch]:
        """Yield the frames of a span."""
        with in_one_line():
            frames, size = list[VideoFrame](), 0
            for frame in video_frames(path, begin, end, self.every):
                frames.append(frame)
                size += frame.pixels.nbytes
                if size >= BATCH_BYTES:
                    yield _batch(path, frames, self.columns)
                    frames, size = [], 0
            if frames:
                yield _batch(path, frames, self.columns)

    def read_rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the frames of the spans that rows name, for mapInArrow."""
        for batch in batches:
            for row in batch.to_pylist():
                yield from self.read(**row)


def read_videos(
    session: SparkSession,
    paths: StrPath | Sequence[StrPath],
    every: float | None = None,
    columns: Sequence[str] = COLUMNS,
    span: float = 60.0,
) -> DataFrame:
    """Return the frames of videos, a row each, with their times.

    ``every`` is the time between two frames, in seconds; all frames unless given.  ``columns``
    are of path, index, seconds, image (Spark's image struct) and content (a JPEG); `SparkModel`
    takes both kinds of pictures.  A task decodes some ``span`` seconds of a video, from the key
    frame before them.  The driver and every executor must reach the files by the same path, and
    have PyAV or OpenCV (``pip install 'sparknet[video]'``).
    """
    reader = FrameReader(tuple(columns), every, span)
    names = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    spans = reader.spans(str(Path(path).absolute()) for path in names)
    if not spans:
        raise SparkError("read_videos needs the path of a video")
    rows = session.createDataFrame(spans, "path string, begin double, end double")
    parts = rows.coalesce(1).repartition(len(spans))
    return parts.mapInArrow(by_value(reader.read_rows), reader.schema)


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
