"""Broadcast of files: executors fetch each once a session, and their workers map the weights."""

from __future__ import annotations

import mmap
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import numpy as np

from sparknet.errors import FileError, SparkError
from sparknet.native import NDArray
from sparknet.native.core import Guard
from sparknet.net.fed import FedNet
from sparknet.net.scratch import scratch_folder
from sparknet.predict.texts import Texts, TokenizerFile
from sparknet.spark.cluster.background_job import is_classic
from sparknet.spark.cluster.by_value import by_value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_sent: dict[str, WeakSet[SparkSession]] = {}
"""File → the sessions that have it."""


def send(session: SparkSession, name: str, write: Callable[[Path], object]) -> None:
    """Offer tasks a file as ``SparkFiles.get(name)``; ``write`` makes it if it does not exist.

    The name must depend on the contents.  The file stays while its sessions run: DataFrames are
    computed late and repeatedly, and a Spark in this process reads the file each time.
    """
    if session in _sent.get(name, ()):
        return
    _delete_stopped()
    path = Path(_folder().name) / name
    if not path.exists():
        write(path)
    if is_classic(session):
        session.sparkContext.addFile(str(path))  # addArtifacts, too, but only since Spark 4
    else:
        session.addArtifacts(str(path), file=True)
    _sent.setdefault(name, WeakSet()).add(session)


def _delete_stopped() -> None:
    """Delete the files of sessions that have stopped, unless another one has them."""
    for name, sessions in list(_sent.items()):
        if not any(map(_runs, sessions)):
            del _sent[name]
            Path(_folder().name, name).unlink(missing_ok=True)


def _runs(session: SparkSession) -> bool:
    if is_classic(session):
        return session.sparkContext._jsc is not None
    return not getattr(session, "is_stopped", False)


def withdraw(session: SparkSession, name: str) -> None:
    """Stop offering a file, and delete the driver's copy and those on the executors.

    DataFrames that need it can no longer be computed; `send` offers it again.
    """
    if session not in _sent.get(name, ()):
        return
    if is_classic(session):
        context = session.sparkContext
        by_job = context._jsc.sc().addedFiles().valuesIterator()  # Spark has no removeFile
        while by_job.hasNext():
            files = by_job.next()
            for url in _strings(files.keysIterator()):
                if url.endswith(f"/{name}"):
                    files.remove(url)
        rows = session.range(0, context.defaultParallelism, 1, context.defaultParallelism)
        rows.mapInArrow(by_value(partial(_removed, name=name)), "id long").collect()
    _sent[name].discard(session)
    _delete_stopped()


def _strings(names: Any) -> list[str]:
    strings = []
    while names.hasNext():
        strings.append(str(names.next()))
    return strings


def _removed(batches: Iterable[Any], name: str) -> Iterator[Any]:
    from pyspark import SparkFiles

    for batch in batches:
        Path(SparkFiles.get(name)).unlink(missing_ok=True)
        yield batch


def received(name: str) -> Path:
    """Return the file of this name that was sent, in a task."""
    from pyspark import SparkFiles

    path = Path(SparkFiles.get(name))
    if not path.exists():
        raise SparkError(
            f"this task got no file {name} of the model, as tasks of streams get none under Spark "
            "Connect: predict streams with SparkModel.transform, or in foreachBatch"
        )
    return path


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return scratch_folder()


_DIGEST = 16
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def goes_inside(session: SparkSession, size: int, is_stream: bool) -> bool:
    """Return whether a model of so many bytes travels inside the function that tasks call.

    Under Spark Connect tasks of streams get no files, and a message holds 128 MiB.
    """
    if is_classic(session):
        return False
    if is_stream and size > _LARGEST:
        raise SparkError(
            f"the weights have {size / 2**20:.0f} MiB, and under Spark Connect the tasks of a "
            f"stream take {_LARGEST >> 20} at most: predict its batches in foreachBatch"
        )
    return is_stream or size <= _SMALL


_LARGEST, _SMALL = 100 << 20, 4 << 20


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
    """Return whether only this user can write to a file, after taking the right from others."""
    status = os.fstat(file)
    if status.st_uid == os.getuid() and status.st_mode & _OTHERS:
        os.fchmod(file, status.st_mode & ~_OTHERS)
        status = os.fstat(file)
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & _OTHERS
