"""What is fuzzed: every reader of files of unknown origin, by kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparknet.errors import SparkNetError
from sparknet.loaders import NumpyFiles, open_records
from sparknet.loaders.image import decode
from sparknet.loaders.mnist import IMAGES, read_idx
from sparknet.proto.blob_file import read_blob
from sparknet.proto.model_file import parse_model, read_model
from sparknet.proto.state_file import parse_state, read_state, state_model_path
from sparknet.proto.text_files import read_net, read_solver


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


def _taking(kind: str, **options: Any) -> Callable[[Path], None]:
    """Opens records, and takes some of them."""

    def read(path: Path) -> None:
        records = open_records(path, kind=kind, **options)
        records.take(range(min(len(records), 3)))
        records.take(slice(-2, None))

    return read


READERS: dict[str, Callable[[Path], object]] = {
    "net": read_net,
    "solver": read_solver,
    "caffemodel": _caffemodel,
    "solverstate": _solverstate,
    "binaryproto": read_blob,
    "model_h5": _model_h5,
    "state_h5": _state_h5,
    "blocks": _taking("blocks"),
    "cifar10": _taking("cifar10"),
    "data_h5": _taking("hdf5"),
    "idx": lambda path: read_idx(path, IMAGES, []),
    "image": lambda path: decode(str(path), str(path), None),
    "lmdb": _taking("datums", backend="lmdb"),
    "npy": lambda path: NumpyFiles(data=path),
    "npz": _taking("numpy"),
    "parquet": _taking("parquet"),
    "tar": _taking("tars", damaged="skip"),
}


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
