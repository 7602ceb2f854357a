"""Image files: those of a list, or those of a folder with a subfolder for each class."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from sparknet import renamed
from sparknet.errors import FileError
from sparknet.loaders.image import Size, read_list
from sparknet.loaders.pictures import Color, PictureReader, Pictures
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.proto.byte_source import StrPath

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
            entries = [
                (path, label)
                for label, name in enumerate(self.classes)
                for path in image_paths(Path(source) / name)
            ]
        else:
            entries = [(str(Path(root) / name), label) for name, label in read_list(str(source))]
        if not entries:
            is_folder = Path(source).is_dir()
            told = ": its subfolders are the classes, and none of them has one" if is_folder else ""
            raise FileError(source, f"holds no image{told}")
        self.paths = [path for path, _ in entries]
        super().__init__(
            PictureReader(size, color, invalid, preprocessing), [label for _, label in entries]
        )

    def name(self, number: int) -> str:
        return self.paths[number]

    def stored(self, number: int) -> str:
        return self.paths[number]


def class_folders(folder: StrPath) -> list[str]:
    """The subfolders of a folder, sorted: the order of the class numbers."""
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())


def image_paths(folder: Path) -> list[str]:
    """The images in a folder and below, sorted."""
    return [
        str(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix.lower() in SUFFIXES and path.is_file()
    ]
