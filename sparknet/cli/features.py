"""`sparknet features`: writes what a net computes of each input to a file."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.cli import flags, inputs, net_file, predict
from sparknet.cli.predict import data_entry
from sparknet.cli.record_files import ParquetWriter
from sparknet.cli.verb import Verb, WrongUse
from sparknet.errors import DataError, FileError

Rows = Mapping[str, Any]


class FeatureFile(ABC):
    """Writes the rows of batches; the file gets its name when the exit stack ends without error."""

    def __init__(self, stack: ExitStack, path: str, blobs: Sequence[str]) -> None:
        self.path, self.blobs = path, blobs
        self.open(stack)

    @abstractmethod
    def open(self, stack: ExitStack) -> None:
        """Start the file; the stack finishes it."""

    @abstractmethod
    def add(self, rows: Rows) -> None:
        """Add the rows of a batch, by blob."""

    @staticmethod
    def open_all(stack: ExitStack, paths: Sequence[str], blobs: Sequence[str]) -> list[FeatureFile]:
        """Return the files for these blobs: one for each, or one for all."""
        if len(paths) == 1 and (together := TOGETHER.get(Path(paths[0]).suffix)):
            return [together(stack, paths[0], blobs)]
        if len(paths) != len(blobs):
            raise WrongUse(
                f"{len(blobs)} blobs need as many files, or one .npz, .h5 or .parquet; "
                f"-out names {len(paths)}"
            )
        for path in paths:
            if (suffix := Path(path).suffix.lower()) in _OTHERS:
                raise WrongUse(
                    f"-out {path}: features are not written as {suffix}, but as .npy, .npz, .h5 or "
                    ".parquet, or by a name without these as an LMDB"
                )
        return [
            (NumpyFeatures if path.endswith(".npy") else LMDBFeatures)(stack, path, [blob])
            for path, blob in zip(paths, blobs, strict=True)
        ]


class NumpyFeatures(FeatureFile):
    """A .npy or .npz file; the rows stay in memory until the end."""

    def open(self, stack: ExitStack) -> None:
        from sparknet.proto.byte_source import replacing

        self._draft = stack.enter_context(replacing(self.path))
        self._parts: dict[str, list[Any]] = {name: [] for name in self.blobs}
        stack.push(self._finish)

    def add(self, rows: Rows) -> None:
        for name in self.blobs:
            self._parts[name].append(rows[name])

    def _finish(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            return
        arrays: dict[str, Any] = {
            name: np.concatenate(parts) for name, parts in self._parts.items()
        }
        with self._draft.open("wb") as file:
            if self.path.endswith(".npy"):
                np.save(file, arrays[self.blobs[0]])
            else:
                np.savez(file, **arrays)


class HDF5Features(FeatureFile):
    """An HDF5 file with a data set for each blob, for HDF5Data layers."""

    def open(self, stack: ExitStack) -> None:
        from sparknet.proto.byte_source import replacing

        self._draft = stack.enter_context(replacing(self.path))
        self._is_new = True

    def add(self, rows: Rows) -> None:
        from sparknet.loaders.hdf5 import append_rows

        append_rows(str(self._draft), {name: rows[name] for name in self.blobs}, self._is_new)
        self._is_new = False


class ParquetFeatures(FeatureFile):
    """A Parquet file with a column for each blob."""

    def open(self, stack: ExitStack) -> None:
        self._writer = ParquetWriter(stack, self.path)

    def add(self, rows: Rows) -> None:
        self._writer.add({name: rows[name] for name in self.blobs})


TOGETHER: dict[str, type[FeatureFile]] = {
    ".npz": NumpyFeatures,
    ".h5": HDF5Features,
    ".hdf5": HDF5Features,
    ".parquet": ParquetFeatures,
}
"""Kinds of file that hold all blobs, by suffix."""
_OTHERS = frozenset(
    f".{name}"
    for name in [
        "arrow",
        "avro",
        "csv",
        "feather",
        "json",
        "jsonl",
        "mat",
        "orc",
        "pickle",
        "pkl",
        "pt",
        "pth",
        "tsv",
        "txt",
        "xlsx",
    ]
)
"""Suffixes of other kinds of file, for which nobody means an LMDB."""


class LMDBFeatures(FeatureFile):
    """An LMDB of float Datums under the keys 0000000000, 0000000001, …, as Caffe writes it."""

    def open(self, stack: ExitStack) -> None:
        from sparknet.loaders.lmdb import new_lmdb

        self._writer = stack.enter_context(new_lmdb(self.path))

    def add(self, rows: Rows) -> None:
        for values in rows[self.blobs[0]]:
            self._writer.put(b"%010d" % self._writer.entries, feature_bytes(self.path, values))


def feature_bytes(path: str, values: Any) -> bytes:
    """Return one row of a blob as a Datum of floats."""
    from sparknet.loaders.datums import datum_bytes

    if values.ndim > 3:
        raise FileError(path, f"a Datum has 3 axes, a record has {values.ndim}")
    return datum_bytes(values.reshape((*values.shape, 1, 1, 1)[:3]))


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_weighed(parser)
    inputs.add(parser)
    flags.add_outputs(parser, "the blobs to write")
    flags.add(
        parser,
        "out",
        metavar="FILE[,FILE]",
        help="for each blob an .npy file or, by any other name, a new LMDB; "
        "or one .npz, .h5 or .parquet",
    )
    flags.add(
        parser,
        "iterations",
        type=flags.positive,
        help="without INPUT: the number of batches from the net's own data layers",
    )
    flags.add_gpu(parser)
    predict.add_spark(parser)


def _execute(chosen: Namespace) -> int:
    net_file.take_words(chosen)
    flags.needed(chosen, "outputs", "out")
    blobs, outs = chosen.outputs.split(","), chosen.out.split(",")
    if predict.is_on_spark(chosen):
        return predict.write_by_spark(
            chosen, "features", data_entry(net_file.fed_net(chosen)), blobs
        )
    source: inputs.Inputs | None = None
    batches: Iterator[tuple[dict[str, Any], int]]
    if chosen.inputs:
        net = net_file.fed_net(chosen)
        source = inputs.Inputs(chosen, data_entry(net), net)
        batches = ((net.forward(batch, blobs), len(names)) for names, batch in source)
    else:
        batches = own_data(chosen, blobs)
    with ExitStack() as stack:
        files = FeatureFile.open_all(stack, outs, blobs)
        count = sum(_keep(files, values, rows) for values, rows in batches)
        if not count:
            raise DataError("there was no input that could be read")
    print(f"{chosen.out}: {count} records of {chosen.outputs}", file=sys.stderr)
    return int(source is not None and source.failed > 0)


def own_data(chosen: Namespace, blobs: Sequence[str]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields batches of the net's own data layers."""
    if not chosen.iterations:
        raise WrongUse("give INPUT, or -iterations for batches of the net's own data")
    net = net_file.test_net(chosen)
    if net.inputs:
        raise WrongUse(f"nothing feeds the net's inputs ({', '.join(net.inputs)}): give INPUT")
    for _ in range(chosen.iterations):
        values = net.forward(blobs=blobs)
        rows = int(net.blobs[net.top_names[net._layer_names[0]][0]].shape[0])
        yield {name: np.array(values[name]) for name in blobs}, rows


def _keep(files: Sequence[FeatureFile], found: dict[str, Any], rows: int) -> int:
    for name, values in found.items():
        if not values.ndim or len(values) != rows:
            raise DataError(f"'{name}' is {values.shape}, not one row for each of {rows} inputs")
    for file in files:
        file.add(found)
    return rows


VERB = Verb(
    "features",
    "Write blobs of a net for each input to LMDB, HDF5 or numpy files.",
    _arguments,
    _execute,
)
