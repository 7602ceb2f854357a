"""`sparknet features`: writes blobs of a net for each input to a file.

It does the work of Caffe's extract_features.  Caffe: tools/extract_features.cpp.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from sparknet.cli import flags, inputs, net_file, predict_spark
from sparknet.cli.feature_files import FeatureFile
from sparknet.cli.predict import data_entry
from sparknet.cli.verb import Verb, WrongUse
from sparknet.errors import DataError


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
    predict_spark.add(parser)


def _execute(chosen: Namespace) -> int:
    net_file.take_words(chosen)
    flags.needed(chosen, "outputs", "out")
    blobs, outs = chosen.outputs.split(","), chosen.out.split(",")
    if predict_spark.is_wanted(chosen):
        return predict_spark.write(chosen, "features", data_entry(net_file.fed_net(chosen)), blobs)
    given: inputs.Inputs | None = None
    batches: Iterator[tuple[dict[str, Any], int]]
    if chosen.inputs:
        net = net_file.fed_net(chosen)
        given = inputs.Inputs(chosen, data_entry(net), net)
        batches = ((net.forward(batch, blobs), len(names)) for names, batch in given)
    else:
        batches = own_data(chosen, blobs)
    with ExitStack() as stack:
        files = FeatureFile.open_all(stack, outs, blobs)
        count = sum(_keep(files, found, rows) for found, rows in batches)
        if not count:
            raise DataError("there was no input that could be read")
    print(f"{chosen.out}: {count} records of {chosen.outputs}", file=sys.stderr)
    return int(given is not None and given.failed > 0)


def own_data(chosen: Namespace, blobs: Sequence[str]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yields batches of the net's own data layers."""
    if not chosen.iterations:
        raise WrongUse("give INPUT, or -iterations for batches of the net's own data")
    net = net_file.test_net(chosen)
    if net.inputs:
        raise WrongUse(f"nothing feeds the net's inputs ({', '.join(net.inputs)}): give INPUT")
    for _ in range(chosen.iterations):
        found = net.forward(blobs=blobs)
        rows = int(net.blobs[net.top_names[net._layer_names[0]][0]].shape[0])
        yield {name: np.array(found[name]) for name in blobs}, rows


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
