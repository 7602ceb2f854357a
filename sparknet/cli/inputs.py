"""Inputs of `sparknet predict` and `features`: image files, or records of any kind."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.cli import flags
from sparknet.cli.sources import column_for, open_records
from sparknet.cli.verb import WrongUse
from sparknet.errors import DataError, FileError

if TYPE_CHECKING:
    from sparknet.loaders.records import Records
    from sparknet.loaders.transform import Transform
    from sparknet.net import Entry

Batch = tuple[list[str], dict[str, Any]]
"""The names of some inputs, and their values for the net."""


def add(parser: ArgumentParser) -> None:
    """Add INPUT, and the flags that transform images."""
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        help="image files or folders; or one LMDB, LevelDB, .npy, .npz, .h5, .parquet, …",
    )
    parser.add_argument("--batch", type=flags.positive, metavar="N", help="inputs at a time")
    group = parser.add_argument_group("images", "for nets that say nothing of transform_param")
    group.add_argument("--mean-file", metavar="FILE", help="a mean image, .binaryproto or .npy")
    group.add_argument(
        "--mean-value", type=_numbers, metavar="B[,G,R]", help="a mean for each channel"
    )
    group.add_argument("--scale", type=float, help="what values are multiplied with, after that")
    group.add_argument("--crop", type=flags.positive, metavar="SIZE", help="take the centre")
    group.add_argument(
        "--resize", type=flags.size, metavar="HEIGHTxWIDTH", help="of image files, before the crop"
    )


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"'{text}' are no numbers") from None


class Inputs:
    """The inputs that the command line names, for one entry of a net, in batches.

    Images that cannot be read are named on stderr and left out; `failed` counts them.
    """

    def __init__(self, chosen: Namespace, entry: Entry) -> None:
        from sparknet.loaders.image_files import SUFFIXES

        self.failed = 0
        self._entry = entry
        self._batch = chosen.batch or max(entry.batch, 1)
        self._transform = _transform(chosen, entry)
        self._images = _image_paths(chosen.inputs, SUFFIXES)
        self._records = None if self._images else open_records(chosen.inputs)
        self._size = chosen.resize or self._natural_size()

    def __iter__(self) -> Iterator[Batch]:
        if self._records is not None:
            return self._of_records(self._records)
        return self._of_images()

    def _of_images(self) -> Iterator[Batch]:
        from sparknet.loaders.decoders import Decoders

        with closing(Decoders()) as decoders:
            for begin in range(0, len(self._images), self._batch):
                paths = self._images[begin : begin + self._batch]
                found = [one for one in decoders.map(self._decoded, paths) if self._is_good(one)]
                if found:
                    names, images = zip(*found, strict=True)
                    yield list(names), self._fed(np.stack(images))

    def _is_good(self, found: tuple[str, Any]) -> bool:
        _, image = found
        if isinstance(image, FileError):
            print(f"sparknet: {image}", file=sys.stderr)
            self.failed += 1
        return not isinstance(image, FileError)

    def _decoded(self, path: str) -> tuple[str, Any]:
        """The path, and its image or the error of reading it."""
        from sparknet.loaders.image import decode

        channels = self._entry.record[0] if len(self._entry.record) == 3 else 0
        if channels not in (1, 3):
            shape = " x ".join(map(str, self._entry.record)) or "one number"
            raise DataError(f"'{self._entry.name}' takes no images: it is {shape}")
        try:
            return path, decode(path, path, channels == 3, self._size)
        except FileError as error:
            return path, error

    def _of_records(self, records: Records) -> Iterator[Batch]:
        from sparknet.loaders.batches import one_pass

        column = column_for(records, self._entry)
        number = 0
        for batch in one_pass(records, self._batch):
            rows = batch[column]
            yield [str(number + row) for row in range(len(rows))], self._fed(rows)
            number += len(rows)

    def _fed(self, rows: Any) -> dict[str, Any]:
        return {self._entry.name: self._transform(rows, 0) if self._transform else rows}

    def _natural_size(self) -> tuple[int, int] | None:
        """The size that files are resized to: the mean image's, else the crop's or the input's."""
        if self._transform is not None and self._transform.transformation.mean is not None:
            shape = self._transform.transformation.mean.shape
            return int(shape[1]), int(shape[2])
        if len(self._entry.record) != 3:
            return None
        crop = self._entry.transform.crop_size if self._entry.transform else 0
        height, width = self._entry.record[1:]
        return (max(height, crop), max(width, crop))


def _image_paths(words: Sequence[str], suffixes: set[str]) -> list[str]:
    """The image files of the words and of folders of images; empty for a data set."""
    from sparknet.loaders.image_files import image_paths

    found: list[str] = []
    for word in words:
        path = Path(word)
        if path.suffix.lower() in suffixes:
            found.append(word)
        elif path.is_dir() and not any((path / name).exists() for name in ("data.mdb", "CURRENT")):
            found += image_paths(path)
        elif found:
            raise WrongUse(f"{word} is no image: give images, or one data set")
    return found


def _transform(chosen: Namespace, entry: Entry) -> Transform | None:
    from sparknet.loaders.transform import Transform
    from sparknet.proto import caffe_pb2

    settings: dict[str, Any] = {}
    if chosen.mean_value:
        settings["mean_values"] = chosen.mean_value
    if chosen.scale is not None:
        settings["scale"] = chosen.scale
    if chosen.crop or _is_larger(chosen, entry):
        settings["crop_size"] = chosen.crop or entry.record[1]
    mean = _mean(chosen.mean_file)
    if not settings and mean is None:
        return None
    if entry.transform is not None:
        raise WrongUse(f"the net has a transform_param for '{entry.name}': leave the flags out")
    return Transform(phase=caffe_pb2.TEST, mean=mean, threaded=True, **settings)


def _is_larger(chosen: Namespace, entry: Entry) -> bool:
    """Whether images are larger than the net's square input."""
    if entry.transform is not None or len(entry.record) != 3 or not chosen.resize:
        return False
    return tuple(chosen.resize) != entry.record[1:] and entry.record[1] == entry.record[2]


def _mean(path: str | None) -> Any:
    if path is None:
        return None
    from sparknet.loaders.transform import mean_image

    if not path.endswith(".npy"):
        return mean_image(path)
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FileError(path, f"is no array that can be read: {error}") from error
