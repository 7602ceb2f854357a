"""Image files of a list or of a folder with a subfolder for each class, and class names."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from sparknet import renamed
from sparknet.errors import FileError, clean, outside
from sparknet.loaders.image import Size, read_list
from sparknet.loaders.pictures import Color, PictureReader, Pictures
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import ClassesWarning
from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import StrPath, read_file
from sparknet.proto.text import parse_text

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
