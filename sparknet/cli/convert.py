"""`sparknet convert`: data sets as LMDB databases of Datum, and their means.

Does the work of Caffe's convert_mnist_data, convert_cifar_data, convert_imageset and
compute_image_mean.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sparknet.cli.verb import Verb
from sparknet.errors import FileError

Record = tuple[str, Any, int]
"""What is appended to the key, an image or the bytes of an encoded one, and its label."""


def _arguments(parser: ArgumentParser) -> None:
    kinds = parser.add_subparsers(title="kinds", metavar="KIND", required=True, dest="kind")
    mnist = _kind(kinds, "mnist", "MNIST's IDX files, plain or .gz", _mnist)
    mnist.add_argument("images", metavar="IMAGES")
    mnist.add_argument("labels", metavar="LABELS")
    _destination(mnist)
    cifar = _kind(kinds, "cifar10", "CIFAR-10's binary files", _cifar10)
    cifar.add_argument("files", metavar="FILE", nargs="+")
    _destination(cifar)
    images = _kind(kinds, "images", "a list of image files, with a label after each name", _images)
    images.add_argument("list", metavar="LIST")
    _destination(images)
    images.add_argument("--root", default="", help="a folder that the names are relative to")
    images.add_argument("--resize", type=_size, metavar="HEIGHTxWIDTH")
    images.add_argument("--gray", action="store_true", help="store grey images")
    images.add_argument("--encoded", action="store_true", help="store the files as they are")
    images.add_argument("--shuffle", action="store_true")
    images.add_argument("--seed", type=int, default=0, help="what --shuffle starts from")
    images.add_argument("--check-size", action="store_true", help="refuse images of several sizes")
    mean = _kind(kinds, "mean", "the mean image of an LMDB or LevelDB", _mean)
    mean.add_argument("database", metavar="DATABASE")
    mean.add_argument("out", metavar="OUT.binaryproto")
    mean.add_argument("--backend", choices=("lmdb", "leveldb"), default="lmdb")


def _kind(
    kinds: Any, name: str, help_text: str, convert: Callable[[Namespace], int]
) -> ArgumentParser:
    parser: ArgumentParser = kinds.add_parser(name, help=help_text, description=help_text)
    parser.set_defaults(convert=convert)
    return parser


def _destination(parser: ArgumentParser) -> None:
    parser.add_argument("out", metavar="DATABASE", help="a new folder for the LMDB")
    parser.add_argument("--skip", type=_count, default=0, help="leave out so many items")
    parser.add_argument("--take", type=_count, help="then convert so many, not all")
    parser.add_argument("--mean", metavar="FILE", help="also write the mean image, a binaryproto")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is no count")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    height, _, width = text.partition("x")
    sizes = [int(part) if part.isdecimal() else 0 for part in (height, width)]
    if not all(0 < size < 1 << 16 for size in sizes):
        raise ArgumentTypeError(f"'{text}' is no HEIGHTxWIDTH")
    return sizes[0], sizes[1]


def _execute(chosen: Namespace) -> int:
    status: int = chosen.convert(chosen)
    return status


def _mnist(chosen: Namespace) -> int:
    from sparknet.loaders.mnist import read_mnist

    items = read_mnist(chosen.images, chosen.labels)
    return _write(chosen, (("", image, label) for image, label in items))


def _cifar10(chosen: Namespace) -> int:
    from sparknet.loaders.cifar10 import read_cifar10

    return _write(chosen, (("", image, label) for image, label in read_cifar10(chosen.files)))


def _images(chosen: Namespace) -> int:
    from sparknet.loaders.image import read_list

    if chosen.encoded and (chosen.resize or chosen.gray):
        raise FileError(chosen.list, "--encoded stores files as they are: no --resize, no --gray")
    lines = list(read_list(chosen.list))
    if chosen.shuffle:
        import numpy as np

        order = np.random.default_rng(chosen.seed).permutation(len(lines))
        lines = [lines[int(place)] for place in order]
    failed: list[str] = []
    status = _write(chosen, _pictures(chosen, lines, failed))
    if failed:
        print(f"sparknet convert: {len(failed)} images were left out", file=sys.stderr)
    return status or int(bool(failed))


def _pictures(
    chosen: Namespace, lines: Iterable[tuple[str, int]], failed: list[str]
) -> Iterator[Record]:
    """Images that can be read; the others are named on stderr, as convert_imageset does."""
    from sparknet.loaders.image import decode

    first: Any = None
    for name, label in lines:
        path = str(Path(chosen.root) / name)
        try:
            image = decode(path, path, not chosen.gray, chosen.resize)
            value = Path(path).read_bytes() if chosen.encoded else image
        except OSError as error:
            print(f"sparknet convert: {error}", file=sys.stderr)
            failed.append(path)
            continue
        first = image.shape if first is None else first
        if chosen.check_size and image.shape != first:
            raise FileError(path, f"is {image.shape}; the first image is {first}")
        yield f"_{name}", value, label


def _write(chosen: Namespace, items: Iterable[Record]) -> int:
    from sparknet.loaders.lmdb_writer import write_lmdb
    from sparknet.loaders.mean import Mean
    from sparknet.proto import write_blob

    if chosen.mean and getattr(chosen, "encoded", False):
        raise FileError(
            chosen.mean, "--mean needs decoded images: run 'sparknet convert mean' after"
        )
    mean = Mean()
    stop = None if chosen.take is None else chosen.skip + chosen.take
    part = islice(items, chosen.skip, stop)
    count = write_lmdb(chosen.out, _records(part, mean if chosen.mean else None, chosen.out))
    if chosen.mean:
        if not count:
            raise FileError(chosen.mean, "cannot be the mean of no image")
        write_blob(chosen.mean, mean.value, legacy=True)
    print(f"{chosen.out}: {count} records", file=sys.stderr)
    return 0


def _records(items: Iterable[Record], mean: Any, out: str) -> Iterator[tuple[bytes, bytes]]:
    from sparknet.loaders.datum import datum_bytes, encoded_bytes

    for number, (suffix, image, label) in enumerate(items):
        if mean is not None:
            try:
                mean.add(image)
            except ValueError as error:
                raise FileError(out, f"has no mean: {error}") from error
        value = (
            encoded_bytes(image, label) if isinstance(image, bytes) else datum_bytes(image, label)
        )
        yield f"{number:08d}{suffix}".encode("utf-8", "surrogateescape")[:511], value


def _mean(chosen: Namespace) -> int:
    from sparknet.loaders.mean import database_mean
    from sparknet.proto import write_blob

    mean = database_mean(chosen.database, chosen.backend)
    write_blob(chosen.out, mean, legacy=True)
    for channel, plane in enumerate(mean):
        print(f"mean_value of channel {channel}: {plane.mean():g}")
    return 0


VERB = Verb(
    "convert",
    "Convert MNIST, CIFAR-10 or image files to an LMDB that Data layers read.",
    _arguments,
    _execute,
)
