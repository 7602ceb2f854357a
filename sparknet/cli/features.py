"""`sparknet features`: writes what a net computes of each input to a file."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any, cast

import numpy as np

from sparknet.cli import flags, inputs, net_file, predict
from sparknet.cli.predict import data_entry
from sparknet.cli.record_files import parquet_writer
from sparknet.cli.verb import Verb, WrongUse
from sparknet.errors import DataError, FileError

Add = Callable[[Mapping[str, Any]], object]
"""Adds the rows of a batch, by blob."""


@contextmanager
def _numpy_file(path: str, blobs: Sequence[str]) -> Iterator[Add]:
    """Write a .npy or .npz file; the rows stay in memory until the end."""
    from sparknet.atomic_files import atomic_file

    parts: list[Mapping[str, Any]] = []
    with atomic_file(path) as draft:
        yield parts.append
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in blobs}
        with draft.open("wb") as file:
            if path.endswith(".npy"):
                np.save(file, arrays[blobs[0]])
            else:
                np.savez(file, **cast("dict[str, Any]", arrays))


@contextmanager
def _hdf5_file(path: str, blobs: Sequence[str]) -> Iterator[Add]:
    """Write an HDF5 file with a data set for each blob, for HDF5Data layers."""
    from sparknet.atomic_files import atomic_file
    from sparknet.loaders.hdf5 import append_rows

    is_new = chain([True], repeat(False))
    with atomic_file(path) as draft:
        yield lambda rows: append_rows(str(draft), {b: rows[b] for b in blobs}, next(is_new))


@contextmanager
def _parquet_file(path: str, blobs: Sequence[str]) -> Iterator[Add]:
    """Write a Parquet file with a column for each blob."""
    with parquet_writer(path) as add:
        yield lambda rows: add({name: rows[name] for name in blobs})


@contextmanager
def _lmdb(path: str, blobs: Sequence[str]) -> Iterator[Add]:
    """Write an LMDB of float Datums under the keys 0000000000, 0000000001, …, as Caffe does."""
    from sparknet.loaders.lmdb import new_lmdb

    with new_lmdb(path) as writer:

        def add(rows: Mapping[str, Any]) -> None:
            for values in rows[blobs[0]]:
                writer.put(b"%010d" % writer.entries, feature_bytes(path, values))

        yield add


TOGETHER = {
    ".npz": _numpy_file,
    ".h5": _hdf5_file,
    ".hdf5": _hdf5_file,
    ".parquet": _parquet_file,
}
"""Kinds of file that hold all blobs, by suffix."""
_OTHERS = {
    *(".arrow", ".avro", ".csv", ".feather", ".json", ".jsonl", ".mat", ".orc", ".pickle", ".pkl"),
    *(".pt", ".pth", ".tsv", ".txt", ".xlsx"),
}
"""Suffixes of other kinds of file, for which nobody means an LMDB."""


def _open_files(stack: ExitStack, paths: Sequence[str], blobs: Sequence[str]) -> list[Add]:
    """Return what adds rows to one file for each blob, or one for all; drafts until the exit."""
    if len(paths) == 1 and (together := TOGETHER.get(Path(paths[0]).suffix)):
        return [stack.enter_context(together(paths[0], blobs))]
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
        stack.enter_context((_numpy_file if path.endswith(".npy") else _lmdb)(path, [blob]))
        for path, blob in zip(paths, blobs, strict=True)
    ]


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
        files = _open_files(stack, outs, blobs)
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


def _keep(files: Sequence[Add], found: dict[str, Any], rows: int) -> int:
    for name, values in found.items():
        if not values.ndim or len(values) != rows:
            raise DataError(f"'{name}' is {values.shape}, not one row for each of {rows} inputs")
    for add in files:
        add(found)
    return rows


VERB = Verb(
    "features",
    "Write blobs of a net for each input to LMDB, HDF5 or numpy files.",
    _arguments,
    _execute,
)
