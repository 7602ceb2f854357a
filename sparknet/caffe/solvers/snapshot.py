"""Snapshots: the model and the solver's state in two files (Caffe: solver.cpp, sgd_solver.cpp)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.caffe import weights_io
from sparknet.caffe.net import Net
from sparknet.errors import SolverError
from sparknet.layers import Shape
from sparknet.layers.layer import shape_text
from sparknet.proto import (
    Model,
    SolverState,
    caffe_pb2,
    read_model,
    read_state,
    state_model_path,
    write_state,
)

Array = np.ndarray[Any, Any]
StrPath = str | os.PathLike[str]

_HDF5 = caffe_pb2.SolverParameter.HDF5


def check_place(solver: caffe_pb2.SolverParameter) -> None:
    """Refuse, before anything is trained, a snapshot_prefix that cannot be written."""
    if not solver.snapshot:
        return
    if not solver.HasField("snapshot_prefix"):
        raise SolverError(f"snapshot is {solver.snapshot}, but there is no snapshot_prefix")
    _check_folder(solver)


def check_last_place(solver: caffe_pb2.SolverParameter) -> None:
    """Check the same for the snapshot that ends a training."""
    if solver.snapshot_after_train and solver.HasField("snapshot_prefix"):
        _check_folder(solver)


def _check_folder(solver: caffe_pb2.SolverParameter) -> None:
    folder = Path(solver.snapshot_prefix + "_iter_0").parent
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise SolverError(
            f"snapshot_prefix '{solver.snapshot_prefix}': "
            f"the folder '{folder}' is missing or cannot be written"
        )


def names(solver: caffe_pb2.SolverParameter, iteration: int) -> tuple[str, str]:
    """Return the files of the model and of the state."""
    stem = f"{solver.snapshot_prefix}_iter_{iteration}"
    end = ".h5" if solver.snapshot_format == _HDF5 else ""
    return f"{stem}.caffemodel{end}", f"{stem}.solverstate{end}"


def save(
    solver: caffe_pb2.SolverParameter,
    net: Net,
    iteration: int,
    current_step: int,
    history: Sequence[Array],
) -> tuple[str, str]:
    """Write both files, the state last; each takes its name only when it is whole."""
    model, state = names(solver, iteration)
    weights_io.save(net._runtime, model, solver.snapshot_diff)
    write_state(state, SolverState(iteration, model, current_step, list(history)))
    return model, state


def load(path: StrPath, shapes: Sequence[Shape]) -> tuple[SolverState, Model | None]:
    """Read a state whose history has these shapes, and find the model that it names."""
    state = read_state(path)
    count, needed = len(state.history), len(shapes)
    if count != needed:
        raise SolverError(
            f"{path}: it holds {count} history blobs, this solver of this net needs {needed}"
        )
    for number, (array, shape) in enumerate(zip(state.history, shapes, strict=True)):
        if array.shape not in (shape, (1,) * (4 - len(shape)) + shape):
            raise SolverError(
                f"{path}: history blob {number} is {shape_text(array.shape)}, "
                f"this solver of this net needs {shape_text(shape)}"
            )
    model = state_model_path(state, path)
    return state, None if model is None else read_model(model)
