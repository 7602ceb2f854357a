"""Clips of videos: lists of them, their frames, and how frames become numbers.

C3D: video_data_layer.cpp, image_io.cpp; TSN (yjxiong/caffe): video_data_layer.cpp, io.cpp,
data_transformer.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image import decode, numbered_lines
from sparknet.loaders.resize import resize

Array = np.ndarray[Any, Any]
Size = tuple[int, int]


class VideoClip(NamedTuple):
    """A line of a list: a folder of frames or a video, a number, and labels."""

    path: str
    number: int
    labels: tuple[int, ...]


def read_clips(path: str, numbered: bool, labels: int = 1) -> list[VideoClip]:
    """The lines `path number label` of a list, or `path label`; several labels are apart by
    commas."""
    found = []
    for place, line in numbered_lines(path):
        words = line.split()
        try:
            name, *middle, last = words
            number = [int(word) for word in middle]
            marks = tuple(int(word) for word in last.split(","))
        except ValueError:
            number, marks = [-1, -1], ()
        if len(number) != int(numbered) or min(number, default=0) < 0 or len(marks) < labels:
            wanted = "path, number and label" if numbered else "path and label"
            raise FileError(path, f"line {place} is no {wanted}")
        found.append(VideoClip(name, number[0] if number else 0, marks))
    if not found:
        raise FileError(path, "holds no clip")
    return found


def frames(
    folder: str, numbers: Sequence[int], pattern: str, size: Size | None, color: bool
) -> Array:
    """Frames x channels x height x width bytes of numbered pictures in a folder."""
    found = []
    for number in numbers:
        path = f"{folder}/{named(pattern, number)}"
        found.append(_sized(decode(path, path, color), size))
        if found[-1].shape != found[0].shape:
            raise FileError(path, "has another size than the clip's first frame")
    return np.stack(found)


def named(pattern: str, number: int, axis: str = "x") -> str:
    """A file's name by C's pattern: %d with a width for the number, %c for the axis of a flow."""
    return pattern.replace("%c", axis) % number


def flow_frames(folder: str, numbers: Sequence[int], pattern: str, size: Size | None) -> Array:
    """Frames x 2 x height x width: of each the horizontal flow, then the vertical one."""
    if "%c" not in pattern:
        raise FileError(folder, f"the name_pattern '{pattern}' needs %c, for x and y")
    parts = [
        frames(folder, numbers, pattern.replace("%c", axis), size, False)[:, 0] for axis in "xy"
    ]
    return np.stack(parts, 1)


def _sized(planes: Array, size: Size | None) -> Array:
    if size is None:
        return planes
    image = np.ascontiguousarray(planes.transpose(1, 2, 0))
    found = resize(image, size, "cv2.linear").reshape(*size, len(planes))
    return np.asarray(found.transpose(2, 0, 1))


def open_video(source: str | int) -> Any:
    """A video, or a camera by its number, as OpenCV reads them."""
    try:
        import cv2
    except ImportError as error:
        raise FileError(
            str(source), "videos are read by OpenCV: pip install 'sparknet[video]'"
        ) from error
    video = cv2.VideoCapture(source)
    if not video.isOpened():
        raise FileError(str(source), "cannot be opened as a video")
    return video


def video_frames(video: Any, path: str, wanted: Sequence[int], size: Size | None) -> Array:
    """Frames x 3 x height x width of a video, which is read from its start."""
    found, last = [], wanted[-1]
    for number in range(last + 1):
        fine, pixels = video.read() if number in wanted else (video.grab(), None)
        if not fine:
            raise FileError(path, f"ends at frame {number}, before frame {last}")
        if pixels is not None:
            found.append(_sized(pixels.transpose(2, 0, 1), size))
    return np.stack(found)


def frame_count(video: Any) -> int:
    return int(video.get(7))  # CAP_PROP_FRAME_COUNT


def segments(
    duration: int, parts: int, length: int, rng: np.random.Generator | None
) -> Iterator[int]:
    """The frame before each of a video's parts: by chance, or in its middle without `rng`."""
    share = duration // parts
    for part in range(parts):
        if share < length:
            yield 0
        elif rng is None:
            yield (share - length + 1) // 2 + part * share
        else:
            yield int(rng.integers(share - length + 1)) + part * share


def scaled_crops(size: Size, crop: int, ratios: Sequence[float], distort: int) -> list[Size]:
    """TSN's sizes of crops: shares of the smaller side, high and wide at most so far apart."""
    ratios = ratios or (1, 0.875, 0.75, 0.66)
    sides = [int(min(size) * np.float32(ratio)) for ratio in ratios]
    sides = [crop if abs(side - crop) < 3 else side for side in sides]
    return [
        (high, wide)
        for row, high in enumerate(sides)
        for column, wide in enumerate(sides)
        if abs(row - column) <= distort
    ]


def fixed_places(free: Size, more: bool) -> list[Size]:
    """TSN's places of crops: the corners and the middle, and with `more` eight others."""
    high, wide = free[0] // 4, free[1] // 4
    quarters = [(0, 0), (0, 4), (4, 0), (4, 4), (2, 2)]
    if more:
        quarters += [(0, 2), (4, 2), (2, 0), (2, 4), (1, 1), (1, 3), (3, 1), (3, 3)]
    return [(high * down, wide * right) for down, right in quarters]
