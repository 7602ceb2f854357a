"""convert_imageset and compute_image_mean.

Caffe: tools/convert_imageset.cpp, tools/compute_image_mean.cpp, util/io.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sparknet.cli.convert_target import write_database
from sparknet.cli.tools.tool import Flags, Tool, complain, said
from sparknet.errors import FileError

if TYPE_CHECKING:
    from sparknet.loaders.image import Pixels

SEED = 0
SAME = {"jpeg": "jpg"}


def _convert(words: list[str], flags: Flags) -> int:
    from sparknet.loaders import Order
    from sparknet.loaders.image import read_list

    root, list_file, out = words
    lines = list(read_list(list_file))
    if flags["shuffle"]:
        said("Shuffling data")
        lines = [lines[place] for place in Order(len(lines), SEED).next(len(lines))]
    said(f"A total of {len(lines)} images.")
    if flags["encode_type"] and not flags["encoded"]:
        said("encode_type specified, assuming encoded=true.")
    count = write_database(out, flags["backend"], _records(root, lines, flags))
    said(f"Processed {count} files.")
    return 0


def _records(
    root: str, lines: list[tuple[str, int]], flags: Flags
) -> Iterator[tuple[bytes, bytes]]:
    """Yields a record for each image that can be read; others are reported, and skip a key."""
    from sparknet.loaders.datums import datum_bytes, encoded_bytes

    first: tuple[int, ...] | None = None
    for number, (name, label) in enumerate(lines):
        # Names are appended to the folder without a slash, so it must end in one.
        path = root + name
        try:
            image, file = _image(path, flags)
        except FileError as error:
            complain("convert_imageset", error)
            continue
        first = first or image.shape
        if flags["check_size"] and image.shape != first:
            raise FileError(path, f"is {image.shape}; the first image is {first}")
        value = datum_bytes(image, label) if file is None else encoded_bytes(file, label)
        yield f"{number:08d}_{name}".encode("utf-8", "surrogateescape")[:511], value


def _image(path: str, flags: Flags) -> tuple[Pixels, bytes | None]:
    """The image, and its file's bytes if images are stored encoded."""
    from sparknet.loaders.image import decode, encode

    size = (flags["resize_height"], flags["resize_width"])
    wanted = size if min(size) > 0 else None
    image = decode(path, path, not flags["gray"], wanted)
    stored = Path(path).suffix[1:].lower()
    kind = flags["encode_type"] or (stored if flags["encoded"] else "")
    if not kind:
        return image, None
    if wanted is None and SAME.get(stored, stored) == SAME.get(kind, kind):
        return image, Path(path).read_bytes()
    return image, encode(image, kind, path)


def _mean(words: list[str], flags: Flags) -> int:
    from sparknet.loaders import Datums, mean_of
    from sparknet.proto import write_blob

    mean = mean_of(Datums(words[0], flags["backend"] or None))
    if words[1:]:
        said(f"Write to {words[1]}")
        write_blob(words[1], mean, legacy=True)
    said(f"Number of channels: {len(mean)}")
    for channel, plane in enumerate(mean):
        said(f"mean_value channel [{channel}]: {plane.mean():g}")
    return 0


CONVERT_IMAGESET = Tool(
    "convert_imageset",
    "ROOTFOLDER/ LISTFILE DB_NAME",
    _convert,
    {
        "gray": False,
        "shuffle": False,
        "backend": "lmdb",
        "resize_width": 0,
        "resize_height": 0,
        "check_size": False,
        "encoded": False,
        "encode_type": "",
    },
)
COMPUTE_IMAGE_MEAN = Tool("compute_image_mean", "INPUT_DB [OUTPUT_FILE]", _mean, {"backend": ""})
