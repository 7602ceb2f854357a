"""What is fuzzed, by kind: every reader of files of unknown origin, and tests/fuzz/native.py."""

import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import ANY, patch

from sparknet.errors import SparkNetError
from sparknet.loaders import NumpyFiles, leveldb_table, open_records
from sparknet.loaders.image_decoding import decode
from sparknet.loaders.mnist_cifar10 import IMAGES, read_idx
from sparknet.onnx import OnnxWarning
from sparknet.onnx import read_model as read_onnx
from sparknet.proto.blob_file import read_blob
from sparknet.proto.model_file import parse_model, read_model
from sparknet.proto.state_file import parse_state, read_state, state_model_path
from sparknet.proto.text import read_net, read_solver
from sparknet.weights import read_tensors
from tests.fuzz.layers import layer
from tests.fuzz.native import TARGETS, on_file
from tests.goldens import GOLDENS


def _caffemodel(path: Path) -> None:
    model = read_model(path, diffs=True)
    model.message()
    parse_model(path.read_bytes())


def _solverstate(path: Path) -> None:
    state_model_path(read_state(path), path)
    parse_state(path.read_bytes())


def _model_h5(path: Path) -> None:
    read_model(path, diffs=True)


def _state_h5(path: Path) -> None:
    read_state(path)


def _taking(kind, **options):
    """Opens records, and takes some of them."""

    def read(path: Path) -> None:
        records = open_records(path, kind=kind, **options)
        records.take(range(min(len(records), 3)))
        records.take(slice(-2, None))

    return read


def _in_leveldb(folder: str, name: str) -> Callable[[Path], None]:
    """As the file of that name in a recorded LevelDB."""

    def read(path: Path) -> None:
        with tempfile.TemporaryDirectory() as made:
            database = Path(made, "database")
            shutil.copytree(GOLDENS / "data" / folder, database)
            shutil.copyfile(path, database / name)
            with ExitStack() as stack:
                if path.stat().st_size % 2:  # else little gets past the checksums
                    stack.enter_context(patch.object(leveldb_table, "masked", return_value=ANY))
                _taking("datums", backend="leveldb")(database)

    return read


LEVELDB = {
    "leveldb_log": ("gray_leveldb", "000003.log"),
    "leveldb_manifest": ("rgb_leveldb", "MANIFEST-000002"),
    "leveldb_table": ("rgb_leveldb", "000005.ldb"),
}
"""The recorded databases' folders, and the files in them that are damaged."""

TEXTS = ("net", "solver", "net_built", "layer")
"""The kinds that are text."""


def _onnx(path: Path) -> None:
    """Converted as well: the graph is what a net is made from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnnxWarning)
        read_onnx(path)


READERS = {
    "net": read_net,
    "solver": read_solver,
    "caffemodel": _caffemodel,
    "solverstate": _solverstate,
    "binaryproto": read_blob,
    "model_h5": _model_h5,
    "state_h5": _state_h5,
    "onnx": _onnx,
    "safetensors": read_tensors,
    "blocks": _taking("blocks"),
    "cifar10": _taking("cifar10"),
    "data_h5": _taking("hdf5"),
    "idx": lambda path: read_idx(path, IMAGES, []),
    "image": lambda path: decode(str(path), str(path), None),
    "lmdb": _taking("datums", backend="lmdb"),
    "npy": lambda path: NumpyFiles(data=path),
    "npz": _taking("numpy"),
    "parquet": _taking("parquet"),
    "tar": _taking("tars", invalid="drop"),
    **{kind: _in_leveldb(*place) for kind, place in LEVELDB.items()},
    **{kind: on_file(target) for kind, target in TARGETS.items()},
    "layer": on_file(layer),
}


def name_for(kind: str) -> str:
    """The name of an input's file: HDF5 is known by its suffix."""
    return "input.h5" if kind.endswith("h5") else "input"


def check(kind: str, path: Path) -> bool:
    """Reads a file; True if it was accepted. Anything but a SparkNetError comes out."""
    try:
        READERS[kind](path)
    except SparkNetError as error:
        message = str(error)
    else:
        return True
    if "\n" in message:
        raise AssertionError(f"not one line: {message[:500]!r}")
    return False
