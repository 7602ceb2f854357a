"""Videos: how long they are, and their frames, by PyAV or by OpenCV, whichever is installed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from sparknet.errors import FileError, clean, extra
from sparknet.native import threads
from sparknet.proto.byte_source import check_is_file

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class VideoFrame:
    """A picture of a video."""

    index: int
    """Its number in the video, as its time and the average rate say."""
    seconds: float
    """Its time, from the video's beginning."""
    pixels: Pixels
    """Height x width x 3 of blue, green and red."""


def video_seconds(path: str) -> float:
    """Return how long a video is."""
    with _open_video(path) as video:
        return float(video.seconds)


def video_frames(
    path: str, begin: float = 0.0, end: float = math.inf, every: float | None = None
) -> Iterator[VideoFrame]:
    """Yield the frames from ``begin`` to before ``end``, in seconds.

    With ``every`` the first of each so many seconds, counted from the video's beginning.
    """
    with _open_video(path) as video:
        slot = -1
        for seconds, pixels in video.frames(begin):
            if seconds >= end - _HALF_A_MILLISECOND:
                return
            if seconds < begin - _HALF_A_MILLISECOND:
                continue
            if every is not None:
                before, slot = slot, int((seconds + _HALF_A_MILLISECOND) / every)
                if slot == before:
                    continue
            yield VideoFrame(round(seconds * video.rate), seconds, pixels())


_HALF_A_MILLISECOND = 5e-4
"""Times are rounded to milliseconds by some formats."""


@contextmanager
def _open_video(path: str) -> Iterator[Any]:
    """Open a video, whose errors become a FileError with its name."""
    check_is_file(path)
    kind = _ByPyAV if find_spec("av") is not None else _ByOpenCV
    try:
        video = kind(path)
    except (FileError, ImportError):
        raise
    except Exception as error:
        raise FileError(path, f"is no video that can be read: {clean(error)}") from error
    try:
        yield video
    except kind.errors() as error:
        raise FileError(path, f"is a damaged video: {clean(error)}") from error
    finally:
        video.close()


class _ByPyAV:
    def __init__(self, path: str) -> None:
        import av

        self._container = av.open(path)
        if not self._container.streams.video:
            self.close()
            raise FileError(path, "has no pictures")
        self._stream = self._container.streams.video[0]
        self._stream.codec_context.thread_count = threads()
        self._begin = float((self._stream.start_time or 0) * self._stream.time_base)
        self.rate = float(self._stream.average_rate or 25)
        length = self._stream.duration
        self.seconds = (
            float(length * self._stream.time_base)
            if length is not None
            else (self._container.duration or 0) / av.time_base
        )

    @staticmethod
    def errors() -> Any:
        import av

        return av.error.FFmpegError

    def frames(self, begin: float) -> Iterator[tuple[float, Any]]:
        """Yield times and what makes pixels, from the key frame before ``begin``."""
        if begin > 0:
            place = int((begin + self._begin) / self._stream.time_base)
            self._container.seek(place, stream=self._stream)
        for frame in self._container.decode(self._stream):
            if frame.time is not None:
                yield frame.time - self._begin, lambda: frame.to_ndarray(format="bgr24")  # noqa: B023

    def close(self) -> None:
        self._container.close()


class _ByOpenCV:
    def __init__(self, path: str) -> None:
        with extra("av or opencv-python-headless", "video", "reading videos"):
            import cv2
        self._cv2, self._path = cv2, path
        self._capture = cv2.VideoCapture(path)
        if not self._capture.isOpened():
            raise FileError(path, "is no video that can be read")
        self.rate = self._capture.get(cv2.CAP_PROP_FPS) or 25.0
        self.seconds = self._capture.get(cv2.CAP_PROP_FRAME_COUNT) / self.rate

    @staticmethod
    def errors() -> Any:
        import cv2

        return cv2.error

    def frames(self, begin: float) -> Iterator[tuple[float, Any]]:
        if begin > 0:
            self._capture.set(self._cv2.CAP_PROP_POS_MSEC, 1000 * begin)
        while self._capture.grab():
            seconds = self._capture.get(self._cv2.CAP_PROP_POS_MSEC) / 1000
            yield seconds, self._pixels

    def _pixels(self) -> Pixels:
        is_whole, pixels = self._capture.retrieve()
        if not is_whole:
            raise FileError(self._path, "is a damaged video")
        return np.asarray(pixels, np.uint8)

    def close(self) -> None:
        self._capture.release()
