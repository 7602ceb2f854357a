"""Inputs of verbs: image files, or records of any kind."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags, image_flags
from sparknet.cli.verb import WrongUse
from sparknet.errors import DataError, SparkNetError, printable

if TYPE_CHECKING:
    from sparknet.loaders.image_arrays import Found
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.loaders.records import Records
    from sparknet.net import Entry, Net
    from sparknet.proto.caffe_pb2 import NetParameter, SolverParameter

HELP = "an LMDB, LevelDB, .npz, .h5, .parquet, …; several are chained; MNIST's two files are one; "
HELP += "COLUMN=FILE.npy for arrays"


def open_records(words: Sequence[str], how: Preprocessing | None = None) -> Records:
    """Return the records of files and folders of any kind; ``how`` resizes images."""
    from sparknet.loaders.numpy_files import NumpyFiles
    from sparknet.loaders.opening import kind_of, open_images
    from sparknet.loaders.opening import open_records as opened

    arrays = dict(_array(word) for word in words if word.endswith(".npy"))
    if len(arrays) == len(words):
        return NumpyFiles(**arrays)
    if arrays:
        raise WrongUse("name each array once, and no other data: COLUMN=FILE.npy …")
    return opened(*words) if kind_of(words[0]) == "mnist" else open_images(list(words), how)


def of_solver(solver: SolverParameter) -> tuple[Records | None, Records | None]:
    """Return the records of the data layers of a solver's nets, for training and for testing."""
    from sparknet.graph.state import filter_net
    from sparknet.proto import solver_nets

    nets = solver_nets(solver)
    settings = [_of_net(filter_net(net, net.state)) for net in (nets.train, *nets.tests[:1])]
    return settings[0], settings[1] if settings[1:] else None


def _of_net(net: NetParameter) -> Records | None:
    """Return the records of the first data layer with a data set."""
    from sparknet.layers import LAYERS
    from sparknet.proto.untrusted import check_trusted

    for layer in net.layer:
        if layer.type in LAYERS:
            instance = LAYERS[layer.type](layer, net.state.phase)
            if getattr(instance, "reads_files", False):
                check_trusted(layer, "to read its data")
            records: Records | None = instance.data_set()
            if records is not None:
                return records
    return None


def _array(word: str) -> tuple[str, str]:
    column, equals, path = word.partition("=")
    return (column, path) if equals else ("data", word)


def column_for(records: Records, entry: Entry) -> str:
    """Return the column for an entry: the one of its name, or the only possible one."""
    for name in (entry.name, "data"):
        if name in records.columns:
            return name
    others = [name for name in records.columns if name != "label"]
    if len(others) == 1:
        return others[0]
    raise DataError(
        f"which column is for '{entry.name}'? The data has {', '.join(records.columns)}"
    )


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
    flags.add(parser, "batch", type=flags.positive, metavar="N", help="inputs at a time")
    image_flags.add(parser)


class Inputs:
    """The inputs of one entry in batches; `failed` counts images that cannot be read."""

    def __init__(self, chosen: Namespace, entry: Entry, net: Net) -> None:
        from sparknet.loaders.image_files import SUFFIXES

        self.failed = 0
        self._entry, self._net = entry, net
        self._batch = chosen.batch or max(entry.batch, 1)
        self._images = image_paths(chosen.inputs, SUFFIXES)
        self._records = None if self._images else self._open(chosen.inputs)

    def _open(self, words: Sequence[str]) -> Records:
        """Return the records; those of a table have the columns that the net was trained on."""
        from sparknet.loaders.parquet import is_table, read_table
        from sparknet.loaders.records import ArrayRecords
        from sparknet.predict.local_rows import with_features

        name, features = self._entry.name, self._net.features
        if name not in features or not is_table(words):
            return open_records(words)
        table = read_table(words, features[name])
        return ArrayRecords(**{name: with_features(table, {name: name}, features)[name]})

    def __iter__(self) -> Iterator[Batch]:
        """Return the batches; the next one is made while the net computes."""
        from sparknet.loaders.batches import ahead

        if self._records is not None:
            return ahead(self._of_records(self._records))
        return ahead(self._of_images())

    def _of_images(self) -> Iterator[Batch]:
        from sparknet.loaders.image_arrays import stacked
        from sparknet.net.input_warnings import warn_of_pictures

        arrays = self._entry.images(training=False)
        for begin in range(0, len(self._images), self._batch):
            paths = self._images[begin : begin + self._batch]
            pictures = arrays.all(paths, paths.__getitem__)
            good = [
                (path, one) for path, one in zip(paths, pictures, strict=True) if self._good(one)
            ]
            if good:
                warn_of_pictures(self._net.tested, [self._entry.name])
                names, images = zip(*good, strict=True)
                yield list(names), {self._entry.name: stacked(images)}

    def _good(self, found: Found) -> bool:
        if isinstance(found, SparkNetError):
            print(f"sparknet predict: {printable(str(found))}", file=sys.stderr)
            self.failed += 1
            return False
        return True

    def _of_records(self, records: Records) -> Iterator[Batch]:
        from sparknet.loaders.batches import one_pass

        column = column_for(records, self._entry)
        number = 0
        for batch in one_pass(records, self._batch):
            rows = batch[column]
            yield [str(number + row) for row in range(len(rows))], {self._entry.name: rows}
            number += len(rows)


def image_paths(words: Sequence[str], suffixes: set[str]) -> list[str]:
    """Return the image files of the words and of folders of images; empty for a data set."""
    from sparknet.loaders.image_files import image_paths as below

    paths: list[str] = []
    for word in words:
        path = Path(word)
        if path.suffix.lower() in suffixes:
            paths.append(word)
        elif path.is_dir() and not any((path / name).exists() for name in ("data.mdb", "CURRENT")):
            paths += below(path)
        elif paths:
            raise WrongUse(f"{word} is no image: give images, or one data set")
    return paths
