"""The weights of a net as one file on each executor, which its Python workers map.

Spark fetches the file once to each executor and removes it when that ends.  All workers that map it
share its pages.
"""

from __future__ import annotations

import mmap
import os
import stat
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import FileError
from sparknet.native import NDArray
from sparknet.native.guard import Guard
from sparknet.net.fed import FedNet
from sparknet.predict.texts import Texts, TokenizerFile
from sparknet.spark.files import received, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DIGEST = 16
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class SharedWeights:
    """Weights in a mapped file: `flat`, which has exactly the values that were sent."""

    def __init__(self, path: Path) -> None:
        """FileError if the file is not whole, or another one."""
        self._guard: Guard | None = None
        try:
            file = path.open("rb")
        except OSError as error:
            raise FileError(path, error.strerror or str(error)) from error
        with file:
            private = _keep_private(file.fileno())
            self.flat = self._mapped(file.fileno(), path)
        if _digest(self.flat) != path.stem.rpartition("-")[2]:
            raise FileError(path, "holds other weights than those that were sent: start Spark anew")
        self.check()
        if not private:
            self.flat = self.flat.copy()

    def check(self) -> None:
        """FileError if the file was cut short since it was mapped."""
        if self._guard is not None:
            self._guard.check()

    def _mapped(self, file: int, path: Path) -> NDArray:
        size = os.fstat(file).st_size
        if size % 4:
            raise FileError(
                path, f"has {size} bytes, which is not a whole number of float32 weights"
            )
        if not size:
            return NDArray.zeros((0,))
        # The engine wants memory that it could write to; pages that nobody writes stay shared.
        memory = mmap.mmap(file, size, access=mmap.ACCESS_COPY)
        self._guard = Guard(memory, path)
        return NDArray.view(np.frombuffer(memory, np.float32))


def send_weights(session: SparkSession, flat: NDArray) -> str:
    """Offer weights to tasks, which find them by `SparkFiles.get` under the name returned."""
    name = weights_name(flat)
    send(session, name, lambda path: _write(path, flat))
    return name


def send_texts(session: SparkSession, tokens: TokenizerFile, tested: FedNet) -> Texts:
    """Offer a tokenizer to tasks; returns what makes a net's inputs of texts there."""
    texts = tokens.here(tested)
    send(session, texts.file, lambda path: path.write_bytes(tokens.text))
    return replace(texts, content=None, find=received)


def weights_name(flat: NDArray) -> str:
    return f"sparknet-{_digest(flat)}.weights"


def _write(path: Path, flat: NDArray) -> None:
    draft = path.with_suffix(".draft")
    draft.write_bytes(_bytes(flat))
    draft.rename(path)


def _digest(flat: NDArray) -> str:
    return blake2b(_bytes(flat), digest_size=_DIGEST).hexdigest()


def _bytes(flat: NDArray) -> memoryview:
    values: Any = np.asarray(flat)
    return memoryview(values).cast("B") if values.size else memoryview(b"")


def _keep_private(file: int) -> bool:
    """Whether only this user can write to a file, after taking the right from others."""
    status = os.fstat(file)
    if status.st_uid == os.getuid() and status.st_mode & _OTHERS:
        os.fchmod(file, status.st_mode & ~_OTHERS)
        status = os.fstat(file)
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & _OTHERS
