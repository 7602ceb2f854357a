"""Window files: images and the boxes in them (R-CNN)."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image_decoding import Pixels
from sparknet.proto.byte_source import check_is_file, open_file

HEAD = 1 << 16
LARGEST = 2**31 - 1
BOX = ("image", "label", "x1", "y1", "x2", "y2")
Boxes = np.ndarray[Any, np.dtype[np.int64]]


class Cut(NamedTuple):
    """A part of an image, the size that it is warped to, and the empty margins around it."""

    pixels: Pixels
    height: int
    width: int
    top: int
    left: int
    right: int


def first_channels(path: str) -> int:
    """Return the number of channels that the first image of a window file has.

    An image is given as ``# number``, file name, channels, height, width, the number of
    windows, then the windows (Caffe: window_data_layer.cpp).
    """
    check_is_file(path)
    with io.TextIOWrapper(open_file(path), "utf-8", "surrogateescape") as file:
        words = file.read(HEAD).split()
    if len(words) < 6 or words[0] != "#":
        raise FileError(path, "is no window file: it must begin with '# number'")
    try:
        channels = int(words[3])
    except ValueError:
        channels = 0
    if not 0 < channels < 2**31:
        raise FileError(path, f"'{words[3]}' is no number of channels")
    return channels


@dataclass(frozen=True)
class Windows:
    """Images, and boxes in them: one row a box with the columns of `BOX`."""

    images: tuple[str, ...]
    channels: tuple[int, ...]
    foreground: Boxes
    background: Boxes


def read_windows(path: str, foreground: float, background: float) -> Windows:
    """Return all of a window file; boxes that overlap between the two thresholds are left out.

    A background box has label 0, whatever the file says.
    """
    images: list[str] = []
    channels: list[int] = []
    windows: dict[bool, list[tuple[int, ...]]] = {True: [], False: []}
    words = Words(path)
    while words.more():
        if words.text("'#'") != "#":
            raise words.wrong("image", len(images), "does not begin with '#'")
        number = words.integer("image number")
        if number != len(images):
            raise words.wrong("image", len(images), f"has the number {number}")
        images.append(words.text("file name"))
        channels.append(words.integer("channels"))
        _ = words.integer("height"), words.integer("width")
        for _ in range(words.integer("windows")):
            label, overlap = words.integer("label"), words.real("overlap")
            box = tuple(words.integer("corner") for _ in range(4))
            if overlap >= foreground:
                if label < 1:
                    raise words.wrong("image", number, f"has foreground of label {label}")
                windows[True].append((number, label, *box))
            elif overlap < background:
                windows[False].append((number, 0, *box))
    if not images:
        raise FileError(path, "is empty")
    boxes = (np.array(windows[kind], np.int64).reshape(-1, len(BOX)) for kind in (True, False))
    return Windows(tuple(images), tuple(channels), *boxes)


class Words:
    """The words of a window file, line by line."""

    def __init__(self, path: str) -> None:
        check_is_file(path)
        self.path = path
        self.words = self._read()
        self.ahead: str | None = None

    def _read(self) -> Iterator[str]:
        with io.TextIOWrapper(open_file(self.path), "utf-8", "surrogateescape") as lines:
            while line := lines.readline(HEAD):
                yield from line.split()

    def more(self) -> bool:
        self.ahead = next(self.words, None)
        return self.ahead is not None

    def text(self, what: str) -> str:
        word, self.ahead = self.ahead or next(self.words, None), None
        if word is None:
            raise FileError(self.path, f"ends where a {what} is expected")
        return word

    def integer(self, what: str) -> int:
        word = self.text(what)
        try:
            value = int(word)
        except ValueError:
            value = LARGEST + 1
        if abs(value) > LARGEST:
            raise FileError(self.path, f"has '{word[:40]}' where a {what} is expected")
        return value

    def real(self, what: str) -> float:
        word = self.text(what)
        try:
            return float(word)
        except ValueError:
            raise FileError(self.path, f"has '{word[:40]}' where a {what} is expected") from None

    def wrong(self, noun: str, number: int, what: str) -> FileError:
        return FileError(self.path, f"{noun} {number} {what}")


def warp_window(image: Pixels, box: Sequence[int], crop: int, pad: int, square: bool) -> Cut:
    """Return a window of an image, warped to at most crop x crop, and where it lies in there.

    With a context or a square the window is enlarged about its middle; what reaches over the
    image's edge stays empty (Caffe: window_data_layer.cpp, load_batch).  Float32 throughout,
    halves rounded away from zero, as there.
    """
    height, width = image.shape[:2]
    x1, y1, x2, y2 = (int(corner) for corner in box)
    top, left, right = 0, 0, 0
    size = [crop, crop]
    if pad > 0 or square:
        columns, rows = _enlarged(x1, x2, y1, y2, crop, pad, square)
        (x1, x2, left, right), width_out = _clipped(*columns, width, crop)
        (y1, y2, top, _), height_out = _clipped(*rows, height, crop)
        size = [height_out, width_out]
    if not (0 <= x1 <= x2 < width and 0 <= y1 <= y2 < height):
        raise ValueError(f"the window {tuple(map(int, box))} is not in {width} x {height}")
    size[0] = min(size[0], crop - top)
    room = crop - left, crop - right
    if min(size[0], size[1], *room) < 1:
        raise ValueError(f"nothing is left of the window {tuple(map(int, box))}")
    part = image[y1 : y2 + 1, x1 : x2 + 1]
    return Cut(part, size[0], size[1], top, left, right)


def _enlarged(
    x1: int, x2: int, y1: int, y2: int, crop: int, pad: int, square: bool
) -> tuple[tuple[int, int], tuple[int, int]]:
    if crop <= 2 * pad:
        raise ValueError(f"crop_size {crop} has no room for context_pad {pad}")
    f = np.float32
    scale = f(crop) / f(crop - 2 * pad)
    half_height, half_width = f(y2 - y1 + 1) / f(2), f(x2 - x1 + 1) / f(2)
    middle_x, middle_y = f(x1) + half_width, f(y1) + half_height
    if square:
        half_height = half_width = max(half_height, half_width)
    columns = rounded(middle_x - half_width * scale), rounded(middle_x + half_width * scale)
    rows = rounded(middle_y - half_height * scale), rounded(middle_y + half_height * scale)
    return columns, rows


def _clipped(first: int, last: int, size: int, crop: int) -> tuple[tuple[int, int, int, int], int]:
    """First and last inside, the padding before and after in pixels of the crop; the length."""
    f = np.float32
    whole = last - first + 1
    before, after = max(0, -first), max(0, last - size + 1)
    first, last = first + before, last - after
    scale = f(crop) / f(max(whole, 1))
    length = rounded(f(last - first + 1) * scale)
    return (first, last, rounded(f(before) * scale), rounded(f(after) * scale)), length


def rounded(value: Any) -> int:
    """C's round."""
    size = math.floor(abs(float(value)) + 0.5)
    return size if value >= 0 else -size
