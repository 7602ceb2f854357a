"""Files of features: an LMDB or .npy for each blob, or one .npz, .h5 or .parquet for all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.cli.parquet_files import ParquetWriter
from sparknet.cli.verb import WrongUse
from sparknet.errors import FileError

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
        """The files for these blobs: one for each, or one for all."""
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
    """One row of a blob as a Datum of floats."""
    from sparknet.loaders.datums import datum_bytes

    if values.ndim > 3:
        raise FileError(path, f"a Datum has 3 axes, a record has {values.ndim}")
    return datum_bytes(values.reshape((*values.shape, 1, 1, 1)[:3]))
