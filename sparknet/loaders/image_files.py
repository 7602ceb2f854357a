"""Image files as records: of a list, or of a folder with a subfolder for each class.

Images are decoded side by side; the damaged ones are named and counted.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from sparknet import renamed
from sparknet.errors import FileError, SpecError, clean, outside
from sparknet.loaders.image_arrays import ImageArrays
from sparknet.loaders.image_decoding import (
    LARGEST,
    Decoders,
    Pixels,
    Size,
    decode,
    image_shape,
    read_list,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import (
    Array,
    Batch,
    Chain,
    ClassesWarning,
    Column,
    Indices,
    Opened,
    Records,
    Subset,
    rows_of,
)
from sparknet.native.alone import cached_property
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath, read_file
from sparknet.proto.text import parse_text

Shape3 = tuple[int, int, int]

LABEL = Column(np.dtype(np.int32), ())


Color = bool | Literal["bgr", "grey"] | None
_COLORS = {"bgr": True, "grey": False}


class PictureReader:
    """How images become arrays of one shape.

    `size` is a height and a width to resize to; without it all images must have the size of
    the first.  `color` is True or "bgr" (blue, green, red), False or "grey", or None for images as
    they are stored; with True a net of one channel gets grey.
    `invalid` says what happens to an image that cannot be decoded: "raise" an error, or "drop"
    it and note it in `failed`, under its name.  A `preprocessing` with a size says more.
    """

    def __init__(
        self,
        size: Size | None,
        color: Color,
        invalid: str,
        preprocessing: Preprocessing | None = None,
    ) -> None:
        if invalid == "skip":
            renamed.warn("invalid='skip'", "invalid='drop'", 5)
            invalid = "drop"
        if invalid not in ("raise", "drop"):
            raise SpecError(f"invalid is {invalid!r}, neither 'raise' nor 'drop'")
        if color not in (True, False, None, *_COLORS):
            raise SpecError(
                f"color is {color!r}: True or 'bgr', False or 'grey', or None is needed; "
                "preprocessing=Preprocessing(color='rgb', resize=…) knows more"
            )
        self.size, self.skips = size, invalid == "drop"
        self.color: bool | None = _COLORS[color] if isinstance(color, str) else color
        self.preprocessing = preprocessing
        self.may_be_grey = color is True and (preprocessing is None or preprocessing.color is None)
        self.failed: dict[str, str] = {}
        self._arrays: ImageArrays | None = None
        if preprocessing is not None:
            if preprocessing.resize is None or size is not None:
                raise SpecError("give size, or preprocessing with resize")
            self.size, self.color = preprocessing.resize, preprocessing.color != "grey"
            self._arrays = ImageArrays(preprocessing, 3 if self.color else 1, training=True)
        self.decoders = Decoders()

    def shape(self, image: str | bytes, name: str) -> Shape3:
        """Return the shape that an image will have, by its header."""
        channels, height, width = image_shape(image, name)
        if height * width > LARGEST:
            raise FileError(name, f"announces {height} x {width} pixels, which is too large")
        channels = channels if self.color is None else 3 if self.color else 1
        return (channels, *(self.size or (height, width)))

    def read(self, image: str | bytes, name: str, shape: Shape3 | None = None) -> Pixels:
        """Return an image as channels x height x width; of that shape, if it is given."""
        actual = self.shape(image, name)
        if shape is not None and actual != shape:
            sizes = [" x ".join(map(str, one)) for one in (actual, shape)]
            raise FileError(
                name, f"is {sizes[0]}, the first image {sizes[1]}: give a size to resize to"
            )
        if self._arrays is not None:
            return self._arrays.of_file(image, name)
        return decode(image, name, self.color, self.size)

    def fail(self, error: FileError) -> None:
        """Note a damaged image, or raise."""
        if not self.skips:
            raise error
        self.failed.setdefault(error.path, str(error))


class Pictures(Opened, ABC):
    """Images and labels; columns data (channels x height x width bytes) and label."""

    def __init__(self, reader: PictureReader, labels: Sequence[int]) -> None:
        self.reader = reader
        self.labels = np.array(labels, np.int32)

    @property
    def failed(self) -> Mapping[str, str]:
        """Images that were left out so far, and why."""
        return self.reader.failed

    @property
    def columns(self) -> Mapping[str, Column]:
        return {"data": Column(np.dtype(np.uint8), self._shape), "label": LABEL}

    def __len__(self) -> int:
        return len(self.labels)

    def in_grey(self) -> Records:
        """Return the same images, opened again for a net of one channel."""
        how = self.reader.preprocessing
        if how is not None:
            return cast(Records, self._again(preprocessing=replace(how, color="grey")))
        return cast(Records, self._again(color=False))

    def take(self, indices: Indices) -> Batch:
        rows = rows_of(indices, len(self))
        images = self.reader.decoders.map(self._decoded, rows.tolist())
        places = [place for place, image in enumerate(images) if image is not None]
        data = np.empty((len(places), *self._shape), np.uint8)
        for out, place in zip(data, places, strict=True):
            out[...] = images[place]
        return {"data": data, "label": self.labels[rows[places]]}

    def take_labels(self, indices: Indices) -> Array:
        """Return the labels of rows, decoding no image unless damaged ones are left out."""
        if self.reader.skips:
            return self.take(indices)["label"]
        return self.labels[rows_of(indices, len(self))]

    @abstractmethod
    def name(self, number: int) -> str:
        """Return the name of an image in messages."""

    @abstractmethod
    def stored(self, number: int) -> str | bytes:
        """Return the path of an image, or its bytes."""

    def _decoded(self, number: int) -> Any:
        try:
            return self.reader.read(self.stored(number), self.name(number), self._shape)
        except FileError as error:
            self.reader.fail(error)
            return None

    @cached_property
    def _shape(self) -> Shape3:
        """The shape of the first image whose header can be read, if no option gives it."""
        if self.reader.size is not None and self.reader.color is not None:
            return (3 if self.reader.color else 1, *self.reader.size)
        for number in range(len(self)):
            try:
                return self.reader.shape(self.stored(number), self.name(number))
            except FileError as error:
                self.reader.fail(error)
        raise FileError(self.name(0) if len(self) else "records", "no image can be read")


def in_grey(records: Records) -> Records:
    """Records for a net of one channel: images that nobody wants in colour are read in grey."""
    if isinstance(records, Pictures) and records.reader.may_be_grey:
        return records.in_grey()
    if isinstance(records, Chain):
        return Chain([in_grey(part) for part in records.parts])
    if isinstance(records, Subset):
        return Subset(in_grey(records.records), records.indices)
    return records


_LARGEST = 64 << 20
_MOST = 1 << 20
"""The largest label of a label map."""


def read_labels(path: StrPath) -> list[str]:
    """Return the names by class number: a file's lines, or the items of a label map (.prototxt).

    Numbers that a label map leaves out have an empty name.
    """
    text = _text(path)
    return _of_map(text, path) if Path(path).suffix == ".prototxt" else text.splitlines()


def _text(path: StrPath) -> str:
    try:
        return read_file(path, _LARGEST).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(path, "cannot be read: is no text in UTF-8") from error


def _of_map(text: str, path: StrPath) -> list[str]:
    items = parse_text(text, caffe_pb2.LabelMap, os.fspath(path)).item
    for item in items:
        if not 0 <= item.label <= _MOST:
            raise FileError(path, f"gives '{clean(item.name)}' the label {item.label}")
    names = [""] * (1 + max((item.label for item in items), default=-1))
    for item in items:
        names[item.label] = item.display_name or item.name
    return names


SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp"}


class ImageFiles(Pictures):
    """The images of a list file (lines `file label`, relative to `root`), or of a folder.

    The subfolders of a folder are the classes, by name: `classes` says which number means
    which.
    """

    @renamed.keywords(damaged="invalid")
    def __init__(
        self,
        source: StrPath,
        root: StrPath = "",
        *,
        size: Size | None = None,
        color: Color = True,
        invalid: Literal["raise", "drop"] = "raise",
        preprocessing: Preprocessing | None = None,
    ) -> None:
        self.classes: list[str] = []
        if Path(source).is_dir():
            self.classes = class_folders(source)
            paths = [image_paths(Path(source) / name) for name in self.classes]
            entries = [(path, label) for label, those in enumerate(paths) for path in those]
            if entries:
                _warn_of_folders(Path(source), dict(zip(self.classes, paths, strict=True)))
        else:
            entries = [(str(Path(root) / name), label) for name, label in read_list(str(source))]
        if not entries:
            is_folder = Path(source).is_dir()
            hint = ": its subfolders are the classes, and none of them has one" if is_folder else ""
            raise FileError(source, f"holds no image{hint}")
        self.paths = [path for path, _ in entries]
        super().__init__(
            PictureReader(size, color, invalid, preprocessing), [label for _, label in entries]
        )

    def name(self, number: int) -> str:
        return self.paths[number]

    def stored(self, number: int) -> str:
        return self.paths[number]


def class_folders(folder: StrPath) -> list[str]:
    """Return the subfolders of a folder, sorted: the order of the class numbers.

    Hidden ones are none.
    """
    there = (entry for entry in os.scandir(folder) if entry.is_dir())
    return sorted(entry.name for entry in there if not entry.name.startswith("."))


def _warn_of_folders(source: Path, images: Mapping[str, Sequence[str]]) -> None:
    """Warn of a folder that is laid out as no folder of classes is."""
    empty = [name for name, paths in images.items() if not paths]
    beside = [path for path in source.iterdir() if path.suffix.lower() in SUFFIXES]
    inner = [{Path(path).relative_to(source).parts[1:-1][:1] for path in images[n]} for n in images]
    doubts = []
    if empty:
        doubts.append(f"class '{clean(empty[0])}' has no image")
    if beside:
        doubts.append(f"{len(beside)} images, as {clean(beside[0].name)}, are in no class's folder")
    if len(inner) > 1 and () not in set.union(*inner) and all(one == inner[0] for one in inner):
        names = ", ".join(f"'{clean(name)}'" for name in list(images)[:3])
        below = ", ".join(sorted(f"'{clean(one[0])}'" for one in inner[0])[:3])
        doubts.append(f"its classes are {names}, each with the folders {below}: are these classes?")
    for doubt in doubts:
        warnings.warn(f"{os.fspath(source)}: {doubt}", ClassesWarning, stacklevel=outside())


def image_paths(folder: Path) -> list[str]:
    """Return the images in a folder and below, sorted."""
    return [
        str(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in SUFFIXES and path.is_file()
    ]
