"""The solverstate: what a solver needs, beside the weights, to go on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sparknet.errors import FileError
from sparknet.proto import caffe_pb2, hdf5
from sparknet.proto.blob_file import (
    Array,
    Chunk,
    blob_chunks,
    load_blob,
    parsed,
    walked,
    wrapped,
    write_chunks,
)
from sparknet.proto.byte_source import ByteSource, StrPath, open_source
from sparknet.proto.wire import STATE, encode_varint, header


@dataclass(eq=False)
class SolverState:
    """A solver's snapshot; `history` is in the order of Caffe's solverstate files."""

    iteration: int = 0
    learned_net: str = ""
    current_step: int = 0
    history: list[Array] = field(default_factory=list)


def read_state(path: StrPath) -> SolverState:
    """Reads a solverstate, binary or HDF5."""
    with open_source(path) as source:
        if hdf5.is_hdf5(source):
            return SolverState(*hdf5.read_hdf5_state(path))
        return _parse(source)


def parse_state(data: bytes | bytearray | memoryview, name: str = "<memory>") -> SolverState:
    """Return a binary solverstate that is in memory."""
    return _parse(ByteSource(data, name))


def write_state(path: StrPath, state: SolverState) -> None:
    """Writes a solverstate: HDF5 if the name ends in .h5, otherwise binary."""
    for name in ("iteration", "current_step"):
        if not 0 <= getattr(state, name) < 1 << 31:
            raise FileError(path, f"{name} {getattr(state, name)} does not fit a solverstate")
    if hdf5.has_suffix(path):
        hdf5.write_hdf5_state(
            path, state.iteration, state.learned_net, state.current_step, state.history
        )
    else:
        write_chunks(path, list(_chunks(state)))


def state_model_path(state: SolverState, path: StrPath) -> Path | None:
    """Return the model that a state names, from here, its folder or beside it; or None."""
    if not state.learned_net:
        return None
    model, folder = Path(state.learned_net), Path(path).parent
    for candidate in (model, folder / model, folder / model.name):
        try:
            if candidate.is_file():
                return candidate
        except (OSError, ValueError):
            break
    raise FileError(path, f"the model file {state.learned_net!r} that it names is missing")


def _parse(source: ByteSource) -> SolverState:
    skeleton, payloads = walked(source, STATE, "solver state")
    message = parsed(source, caffe_pb2.SolverState, skeleton)
    history = [
        load_blob(source, blob, payloads[int(blob.data[0])], f"history blob {index}")
        for index, blob in enumerate(message.history)
    ]
    return SolverState(message.iter, message.learned_net, message.current_step, history)


def _chunks(state: SolverState) -> Iterator[Chunk]:
    yield encode_varint(1 << 3) + encode_varint(state.iteration)
    if state.learned_net:
        name = state.learned_net.encode()
        yield header(2, len(name)) + name
    for array in state.history:
        yield from wrapped(
            3, blob_chunks(np.asarray(array, np.float32), None, caffe_pb2.BlobProto())
        )
    yield encode_varint(4 << 3) + encode_varint(state.current_step)
