"""Window files: images and the boxes in them (R-CNN)."""

from __future__ import annotations

from pathlib import Path

from sparknet.errors import FileError

HEAD = 1 << 16


def first_channels(path: str) -> int:
    """The number of channels that the first image of a window file has.

    An image is given as ``# number``, file name, channels, height, width, the number of
    windows, then the windows (Caffe: window_data_layer.cpp).
    """
    if not Path(path).is_file():
        raise FileError(path, "does not exist" if not Path(path).exists() else "is no file")
    with Path(path).open(encoding="utf-8", errors="surrogateescape") as file:
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
