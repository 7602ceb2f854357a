"""Caffe's programs under their own names, with their arguments, for `sparknet alias`."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.cli import caffe_flags
from sparknet.cli import main as command
from sparknet.cli.caffe_flags import Word, words_of
from sparknet.cli.features import feature_bytes
from sparknet.cli.record_files import datums, write_database
from sparknet.cli.upgrade import upgrade
from sparknet.cli.verb import WrongUse, run_reported
from sparknet.errors import FileError

if TYPE_CHECKING:
    from sparknet.caffe import Net
    from sparknet.loaders.image_decoding import Pixels

Flags = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A program; the type of a flag's default makes it a switch, a number or a text."""

    name: str
    usage: str
    execute: Callable[[list[str], Flags], int]
    flags: Mapping[str, bool | int | str] = field(default_factory=dict)

    def run(self, arguments: Sequence[str]) -> int:
        """Run the program; returns the exit status."""
        if not {"-help", "--help", "-h"}.isdisjoint(arguments):
            print("\n".join(self._help()))
            return 0
        return run_reported(self.name, lambda: self._started(arguments))

    def _started(self, arguments: Sequence[str]) -> int:
        words, flags = self._parsed(arguments)
        most = len(self.usage.split())
        if not most - self.usage.count("[") <= len(words) <= most:
            raise WrongUse(f"takes {self.usage}, not {len(words)} words", f"'{self.name} --help'")
        caffe_flags.begin_file(self.name)
        return self.execute(words, flags)

    def _parsed(self, arguments: Sequence[str]) -> tuple[list[str], Flags]:
        line, words, flags = deque(arguments), list[str](), Flags(self.flags)
        switches = {name for name, default in self.flags.items() if isinstance(default, bool)}
        valued = self.flags.keys() - switches
        for word in words_of(
            line, switches | caffe_flags.GLOG_SWITCHES, valued | caffe_flags.GLOG_VALUED
        ):
            if word.flag in flags:
                flags[word.flag] = self._value(word)
            elif word.flag is not None:
                caffe_flags.obey(word.flag, word.value)
            elif word.is_flag:
                raise WrongUse(f"there is no flag '{word.raw}'", f"'{self.name} --help'")
            else:
                words.append(word.raw)
        return words + list(line)[1:], flags

    def _value(self, word: Word) -> bool | int | str:
        default = self.flags[str(word.flag)]
        if isinstance(default, bool):
            return word.value == "true"
        if isinstance(default, str):
            return word.value
        try:
            return int(word.value)
        except ValueError:
            raise WrongUse(f"{word.raw}: '{word.value}' is no number") from None

    def _help(self) -> list[str]:
        lines = [
            f"{self.name} [FLAGS] {self.usage}",
            "of sparknet, as Caffe's program of that name",
        ]
        for name, default in self.flags.items():
            text = str(default).lower() if isinstance(default, bool) else repr(default)
            lines.append(f"  -{name}  by default {text}")
        return lines


def log(message: str) -> None:
    """Print a line of the log in glog's format."""
    from sparknet.caffe.solvers.report import say

    say(message)


def complain(name: str, message: object) -> None:
    print(f"{name}: {message}", file=sys.stderr)


BACKENDS = ("lmdb", "leveldb")


def check_backend(name: str, backend: str) -> None:
    """Say that an LMDB is written in place of a LevelDB; WrongUse for another backend."""
    if backend not in BACKENDS:
        raise WrongUse(f"there is no backend '{backend}': {' or '.join(BACKENDS)}")
    if backend == "leveldb":
        complain(name, "warning: writes an LMDB, which 'backend: LEVELDB' reads too in sparknet")


_CIFAR_BATCH = 10_000
"""Images in each of CIFAR-10's files."""


def _convert_cifar(words: list[str], flags: Flags) -> int:
    source, out, backend = words
    check_backend("convert_cifar_data", backend)
    folder = Path(source)
    parts = {"train": [f"data_batch_{number}.bin" for number in range(1, 6)]}
    parts["test"] = ["test_batch.bin"]
    for part, names in parts.items():
        path = str(Path(out) / f"cifar10_{part}_{backend}")
        count = write_database(path, _cifar_records([folder / name for name in names]))
        log(f"{path}: {count} images")
    return 0


def _cifar_records(files: Sequence[Path]) -> Iterator[tuple[bytes, bytes]]:
    from sparknet.loaders import CIFAR10, one_pass
    from sparknet.loaders.datums import datum_bytes

    for place, file in enumerate(files):
        number = place * _CIFAR_BATCH
        for batch in one_pass(CIFAR10(str(file)), 256):
            for image, label in zip(batch["data"], batch["label"], strict=True):
                yield b"%05d" % number, datum_bytes(image, int(label))
                number += 1


def _extract(words: list[str], flags: Flags) -> int:
    from sparknet.loaders.lmdb import new_lmdb

    weights, described, names, outs, batches, backend, *device = words
    blobs, paths = names.split(","), outs.split(",")
    if len(blobs) != len(paths):
        raise WrongUse(f"{len(blobs)} blobs need as many databases, not {len(paths)}")
    if not batches.isdecimal():
        raise WrongUse(f"the number of batches is '{batches}'")
    if device[:1] == ["GPU"]:
        from sparknet.devices import take_gpu

        if reason := take_gpu(int(device[1]) if device[1:] else 0):
            complain("extract_features", f"GPU: {reason}")
    check_backend("extract_features", backend)
    net = _net(described, weights, blobs)
    with ExitStack() as stack:
        files = [stack.enter_context(new_lmdb(path)) for path in paths]
        for _ in range(int(batches)):
            tops = net.forward(blobs=blobs)
            for file, path, blob in zip(files, paths, blobs, strict=True):
                for values in tops[blob]:
                    file.put(b"%010d" % file.entries, feature_bytes(path, values))
        for file, blob in zip(files, blobs, strict=True):
            log(f"Extracted features of {file.entries} query images for feature blob {blob}")
    log("Successfully extracted the features!")
    return 0


def _net(described: str, weights: str, blobs: list[str]) -> Net:
    from sparknet.caffe import TEST, Net
    from sparknet.cli import net_file
    from sparknet.errors import SpecError

    net = Net.from_proto(net_file.read_text(described), TEST)
    net.copy_from(weights)
    for blob in blobs:
        if blob not in net.blobs:
            raise SpecError(f"{described}: there is no blob '{blob}'")
        if not net.blobs[blob].shape:
            raise SpecError(f"{described}: '{blob}' is one number, not a row for each image")
    if net.inputs:
        raise SpecError(f"{described}: nothing feeds the net's inputs: {', '.join(net.inputs)}")
    return net


_SHUFFLE_SEED = 0
SAME = {"jpeg": "jpg"}


def _convert_images(words: list[str], flags: Flags) -> int:
    from sparknet.loaders import Order
    from sparknet.loaders.image_decoding import read_list

    root, list_file, out = words
    check_backend("convert_imageset", str(flags["backend"]))
    lines = list(read_list(list_file))
    if flags["shuffle"]:
        log("Shuffling data")
        lines = [lines[place] for place in Order(len(lines), _SHUFFLE_SEED).next(len(lines))]
    log(f"A total of {len(lines)} images.")
    if flags["encode_type"] and not flags["encoded"]:
        log("encode_type specified, assuming encoded=true.")
    count = write_database(out, _image_records(root, lines, flags))
    log(f"Processed {count} files.")
    return 0


def _image_records(
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
    """Return the image, and its file's bytes if images are stored encoded."""
    from sparknet.loaders.image_decoding import decode, encode

    size = (flags["resize_height"], flags["resize_width"])
    new_size = size if min(size) > 0 else None
    image = decode(path, path, not flags["gray"], new_size)
    stored = Path(path).suffix[1:].lower()
    kind = flags["encode_type"] or (stored if flags["encoded"] else "")
    if not kind:
        return image, None
    if new_size is None and SAME.get(stored, stored) == SAME.get(kind, kind):
        return image, Path(path).read_bytes()
    return image, encode(image, kind, path)


def _write_mean(words: list[str], flags: Flags) -> int:
    from sparknet.loaders import Datums, mean_of
    from sparknet.proto import write_blob

    mean = mean_of(Datums(words[0]))
    if words[1:]:
        log(f"Write to {words[1]}")
        write_blob(words[1], mean, legacy=True)
    log(f"Number of channels: {len(mean)}")
    for channel, plane in enumerate(mean):
        log(f"mean_value channel [{channel}]: {plane.mean():g}")
    return 0


AT_ONCE = 256
_PAIR_SEED = 0


def _convert_mnist(words: list[str], flags: Flags) -> int:
    from sparknet.loaders import MNIST

    check_backend("convert_mnist_data", str(flags["backend"]))
    records = MNIST(*words[:2])
    log(f"A total of {len(records)} items.")
    count = write_database(words[2], datums(records, words[2]))
    log(f"Processed {count} files.")
    return 0


def _convert_pairs(words: list[str], flags: Flags) -> int:
    check_backend("convert_mnist_siamese_data", "leveldb")
    count = write_database(words[2], _pairs(words[0], words[1]))
    log(f"Processed {count} files.")
    return 0


def _pairs(images: str, labels: str) -> Iterator[tuple[bytes, bytes]]:
    """Yields as many random pairs as there are images; label 1 means the same digit."""
    from sparknet.loaders import MNIST
    from sparknet.loaders.datums import datum_bytes

    records = MNIST(images, labels)
    log(f"A total of {len(records)} items.")
    rows = np.random.default_rng(_PAIR_SEED).integers(0, len(records) or 1, (len(records), 2))
    for start in range(0, len(rows), AT_ONCE):
        left, right = (records.take(one) for one in rows[start : start + AT_ONCE].T)
        pairs = np.concatenate([left["data"], right["data"]], 1)
        same = left["label"] == right["label"]
        for number, (pair, alike) in enumerate(zip(pairs, same, strict=True), start):
            yield b"%08d" % number, datum_bytes(pair, int(alike))


_MNIST = "IMAGE_FILE LABEL_FILE DB_NAME"


def _upgrade(kind: str, name: str, words: list[str], flags: Flags) -> int:
    status = upgrade(words[0], words[1], kind, name)
    log(f"Wrote {words[1]}")
    return status


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "convert_imageset",
            "ROOTFOLDER/ LISTFILE DB_NAME",
            _convert_images,
            {
                **dict.fromkeys(("gray", "shuffle", "check_size", "encoded"), False),
                **dict.fromkeys(("resize_width", "resize_height"), 0),
                "backend": "lmdb",
                "encode_type": "",
            },
        ),
        Tool("compute_image_mean", "INPUT_DB [OUTPUT_FILE]", _write_mean, {"backend": ""}),
        Tool(
            "extract_features",
            "WEIGHTS NET BLOB[,BLOB] DB_NAME[,DB_NAME] BATCHES DB_TYPE [CPU|GPU] [DEVICE_ID=0]",
            _extract,
        ),
        Tool("convert_mnist_data", _MNIST, _convert_mnist, {"backend": "lmdb"}),
        Tool("convert_mnist_siamese_data", _MNIST, _convert_pairs),
        Tool("convert_cifar_data", "INPUT_FOLDER OUTPUT_FOLDER DB_TYPE", _convert_cifar),
        *(
            Tool(name, "OLD NEW", partial(_upgrade, kind, name))
            for name, kind in (
                ("upgrade_net_proto_text", "net"),
                ("upgrade_net_proto_binary", "model"),
                ("upgrade_solver_proto_text", "solver"),
            )
        ),
    )
}


def main(name: str, arguments: Sequence[str] | None = None) -> int:
    """Run `caffe` or one of the tools; returns the exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    return command(words, name) if name == "caffe" else TOOLS[name].run(words)
