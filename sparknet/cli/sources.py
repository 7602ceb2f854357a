"""Opens data sets named on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparknet.cli.verb import WrongUse
from sparknet.errors import DataError

if TYPE_CHECKING:
    from sparknet.loaders.preprocessing import Preprocessing
    from sparknet.loaders.records import Records
    from sparknet.net import Entry
    from sparknet.proto.caffe_pb2 import NetParameter, SolverParameter

HELP = "an LMDB, LevelDB, .npz, .h5, .parquet, …; several are chained; MNIST's two files are one; "
HELP += "COLUMN=FILE.npy for arrays"


def open_records(words: Sequence[str], how: Preprocessing | None = None) -> Records:
    """The records of these files and folders, of any kind; images are resized as ``how`` says."""
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
    """The records of the data layers of a solver's nets, for training and for testing."""
    from sparknet.graph.state import filter_net
    from sparknet.proto import solver_nets

    nets = solver_nets(solver)
    found = [_of_net(filter_net(net, net.state)) for net in (nets.train, *nets.tests[:1])]
    return found[0], found[1] if found[1:] else None


def _of_net(net: NetParameter) -> Records | None:
    """The records of the first data layer with a data set."""
    from sparknet.layers import LAYERS
    from sparknet.proto.untrusted import check_trusted

    for layer in net.layer:
        if layer.type in LAYERS:
            made = LAYERS[layer.type](layer, net.state.phase)
            if getattr(made, "reads", False):
                check_trusted(layer, "to read its data")
            records: Records | None = made.data_set()
            if records is not None:
                return records
    return None


def _array(word: str) -> tuple[str, str]:
    column, equals, path = word.partition("=")
    return (column, path) if equals else ("data", word)


def column_for(records: Records, entry: Entry) -> str:
    """The column for an entry: the one of its name, or the only possible one."""
    for name in (entry.name, "data"):
        if name in records.columns:
            return name
    others = [name for name in records.columns if name != "label"]
    if len(others) == 1:
        return others[0]
    raise DataError(
        f"which column is for '{entry.name}'? The data has {', '.join(records.columns)}"
    )
