"""One call for every kind of data set."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.errors import FileError, SpecError
from sparknet.loaders.records import Chain, Records
from sparknet.proto.byte_source import StrPath, check_is_file, open_file

if TYPE_CHECKING:
    from sparknet.loaders.preprocessing import Preprocessing

KINDS = {
    # kind: (module in sparknet.loaders, class)
    "blocks": ("blocks", "Blocks"),
    "cifar10": ("mnist_cifar10", "CIFAR10"),
    "datums": ("datums", "Datums"),
    "hdf5": ("hdf5", "HDF5File"),
    "images": ("image_files", "ImageFiles"),
    "mnist": ("mnist_cifar10", "MNIST"),
    "numpy": ("numpy_files", "NumpyFiles"),
    "parquet": ("parquet", "Parquet"),
    "tars": ("tars", "Tars"),
}
PICTURES = ("datums", "images", "tars")
"""Kinds of which records may be encoded images."""
SUFFIXES = {
    ".bin": "cifar10",
    ".blocks": "blocks",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".npz": "numpy",
    ".parquet": "parquet",
    ".tar": "tars",
}
NUMPY = b"\x93NUMPY"
IMAGES = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"RIFF")
STARTS = {
    b"SNBLOCK1": "blocks",
    b"\x89HDF\r\n\x1a\n": "hdf5",
    b"PAR1": "parquet",
    b"PK\x03\x04": "numpy",
    b"\x00\x00\x08\x03": "mnist",
    b"\x1f\x8b": "mnist",
}


def open_records(
    source: StrPath | Sequence[StrPath], *more: StrPath, kind: str | None = None, **options: Any
) -> Records:
    """Return the records of a file, a folder or several files; options are those of the kind's
    class.

    The kind is guessed: a folder is an LMDB, a LevelDB, or images in a subfolder for each
    class; a file goes by its first bytes, then its suffix; a text file lists HDF5 files or
    images.  MNIST takes two files, images and labels.  Several files are chained.
    """
    if not isinstance(source, (str, Path)) and isinstance(source, Sequence):
        if not source:
            raise SpecError("no files to open records from")
        if (kind or kind_of(source[0])) == "tars":
            return _make("tars", source, *more, **options)
        parts = [open_records(one, *more, kind=kind, **options) for one in source]
        return parts[0] if len(parts) == 1 else Chain(parts)
    kind = kind or kind_of(source)
    if kind == "hdf5 list":
        return Chain([_make("hdf5", path, **options) for path in _list_names(str(source))])
    return _make(kind, source, *more, **options)


def open_images(source: StrPath | Sequence[StrPath], how: Preprocessing | None = None) -> Records:
    """Return the same; images are resized as ``how`` says, if it does."""
    first = source if isinstance(source, (str, os.PathLike)) else next(iter(source), "")
    if how is None or kind_of(first) not in PICTURES:
        return open_records(source)
    if how.resize is None:
        return open_records(source, color="grey") if how.color == "grey" else open_records(source)
    return open_records(source, preprocessing=how)


def kind_of(source: StrPath) -> str:
    """Return the kind of data in a file or folder, by its first bytes and its name."""
    path = Path(source)
    if path.is_dir():
        stored = any((path / name).is_file() for name in ("data.mdb", "CURRENT"))
        return "datums" if stored else "images"
    check_is_file(source)
    with open_file(path) as file:
        start = file.read(1 << 10)
    for magic, kind in STARTS.items():
        if start.startswith(magic):
            return kind
    if path.suffix.lower() in SUFFIXES:
        return SUFFIXES[path.suffix.lower()]
    if path.name == "data.mdb" or path.suffix == ".mdb":
        return "datums"
    if start.strip() and b"\0" not in start:
        first = start.split()[0].lower()
        return "hdf5 list" if first.endswith((b".h5", b".hdf5")) else "images"
    if start.startswith(NUMPY):
        raise FileError(source, f"is one array: say which column, as data={path.name}")
    if start.startswith(IMAGES):
        raise FileError(source, "is one image: give its folder, a list of images, or a tar")
    raise FileError(
        source,
        f"is none of {', '.join(KINDS)} by its beginning and its name; in Python kind= says which",
    )


def _make(kind: str, *arguments: Any, **options: Any) -> Records:
    if kind not in KINDS:
        raise SpecError(f"records of kind '{kind}' are not known: {', '.join(KINDS)}")
    module, name = KINDS[kind]
    make: Callable[..., Records] = getattr(import_module(f"sparknet.loaders.{module}"), name)
    try:
        return make(*arguments, **options)
    except TypeError as error:
        raise SpecError(f"records of kind '{kind}' cannot be opened so: {error}") from error


def _list_names(path: str) -> list[str]:
    from sparknet.loaders.hdf5 import read_list

    files = read_list(path)
    if not files:
        raise FileError(path, "lists no file")
    return files
