"""Images in tar files, as ImageNet comes: read in place, never unpacked."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from sparknet import renamed
from sparknet.errors import FileError, clean
from sparknet.loaders.image_decoding import Size, read_list
from sparknet.loaders.image_files import SUFFIXES, Color, PictureReader, Pictures
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.proto.byte_source import StrPath, check_is_file, open_file


@dataclass(frozen=True, slots=True)
class Member:
    """Where an image lies: which tar, its name there, and its bytes."""

    tar: int
    name: str
    start: int
    size: int


class Tars(Pictures):
    """The images of tar files (and of tars inside them), each with a label.

    `labels` is a list file of lines `name label`; names are compared whole, then by their last
    part.  Without it an image's class is its folder in the tar, else the tar inside which it
    lies, else what stands before the first `_` of its name (n01440764_10026.JPEG); `classes`
    says which number means which.  An image that the list does not name is an error.
    """

    @renamed.keywords(damaged="invalid")
    def __init__(
        self,
        paths: StrPath | Sequence[StrPath],
        labels: StrPath | None = None,
        *,
        size: Size | None = None,
        color: Color = True,
        invalid: Literal["raise", "drop"] = "raise",
        preprocessing: Preprocessing | None = None,
    ) -> None:
        self.paths = [str(path) for path in _list_names(paths)]
        self.members = [
            member for number, path in enumerate(self.paths) for member in members(path, number)
        ]
        if not self.members:
            raise FileError(", ".join(self.paths), "holds no image")
        self.classes: list[str] = []
        if labels is not None:
            numbers = self._numbered(dict(read_list(str(labels))), str(labels))
        else:
            names = [class_name(member.name) for member in self.members]
            self.classes = sorted(set(names))
            number_of = {name: number for number, name in enumerate(self.classes)}
            numbers = [number_of[name] for name in names]
        super().__init__(PictureReader(size, color, invalid, preprocessing), numbers)

    def name(self, number: int) -> str:
        member = self.members[number]
        return f"{self.paths[member.tar]}:{clean(member.name)}"

    def stored(self, number: int) -> bytes:
        member = self.members[number]
        try:
            with open_file(self.paths[member.tar]) as file:
                file.seek(member.start)
                return file.read(member.size)
        except OSError as error:
            raise FileError(self.name(number), f"cannot be read: {error.strerror}") from error

    def _numbered(self, labels: Mapping[str, int], path: str) -> list[int]:
        by_last = {PurePosixPath(name).name: label for name, label in labels.items()}
        numbers = []
        for member in self.members:
            label = labels.get(member.name, by_last.get(PurePosixPath(member.name).name))
            if label is None:
                raise FileError(path, f"has no label for {clean(member.name)}")
            numbers.append(label)
        return numbers


def members(path: str, number: int = 0) -> Iterator[Member]:
    """Yield the images of a tar file, in the order in which they lie."""
    check_is_file(path)
    with open_file(path) as file:
        yield from _walk(path, file, number, 0, os.fstat(file.fileno()).st_size, "")


def class_name(name: str) -> str:
    """Return the class in a name of a tar: its folder, or the beginning of its file name."""
    parts = PurePosixPath(name)
    return parts.parent.name or parts.name.partition("_")[0]


def _walk(path: str, file: Any, number: int, begin: int, end: int, folder: str) -> Iterator[Member]:
    """`begin` and `end` are where this tar lies in the outer one; `folder` stands for its name."""
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            last = -1
            while (info := tar.next()) is not None:
                if info.offset <= last or info.size < 0:
                    raise FileError(path, f"is damaged: {clean(info.name)} leads back")
                last = info.offset
                # The archive would remember every member that it has seen.
                vars(tar)["members"] = []
                suffix = PurePosixPath(info.name).suffix.lower()
                start = begin + info.offset_data
                if not info.isreg() or info.issparse():
                    continue
                if start + info.size > end:
                    raise FileError(path, f"is cut short in {clean(info.name)}")
                if suffix == ".tar" and not folder:
                    inner = tar.extractfile(info)
                    stem = PurePosixPath(info.name).stem
                    yield from _walk(path, inner, number, start, start + info.size, stem)
                elif suffix in SUFFIXES:
                    name = f"{folder}/{info.name}" if folder else info.name
                    yield Member(number, name, start, info.size)
    except FileError:
        raise
    except Exception as error:  # tarfile raises nearly every builtin exception for a damaged file
        where = f"{folder}.tar inside is" if folder else "is"
        raise FileError(
            path, f"{where} no plain tar file that can be read: {clean(error)}"
        ) from error


def _list_names(paths: StrPath | Sequence[StrPath]) -> list[StrPath]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
