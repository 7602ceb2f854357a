"""A module with BVLC Caffe 1.0's public names and no others: import it as a real ``caffe``.

Nets, solvers and blobs are those of sparknet.caffe, behind a wall: what is not in Caffe's
python/caffe/_caffe.cpp and pycaffe.py raises, so that nothing leans on what is ours.  There are no
flat buffers, and histories are in files alone.
"""

import os as _os
from collections import OrderedDict as _OrderedDict
from pathlib import Path as _Path
from typing import Any as _Any

from sparknet import caffe as _caffe
from sparknet.caffe import TEST, TRAIN, set_random_seed

__all__ = [
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "Net",
    "RMSPropSolver",
    "SGDSolver",
    "get_solver",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_random_seed",
]

_NET = frozenset(
    {
        "backward",
        "blob_loss_weights",
        "blobs",
        "bottom_names",
        "clear_param_diffs",
        "copy_from",
        "forward",
        "forward_all",
        "inputs",
        "layer_dict",
        "layers",
        "load_hdf5",
        "outputs",
        "params",
        "reshape",
        "save",
        "save_hdf5",
        "share_with",
        "top_names",
    }
)
_SOLVER = frozenset(
    {
        "add_callback",
        "apply_update",
        "iter",
        "net",
        "restore",
        "share_weights",
        "snapshot",
        "solve",
        "step",
        "test_nets",
    }
)
_BLOB = frozenset(
    {"channels", "count", "data", "diff", "height", "num", "reshape", "shape", "width"}
)
_LAYER = frozenset({"blobs", "type"})


class _Wall:
    """An object of which only some names are to be had; nothing can be set."""

    __slots__ = ("_behind", "_names")

    def __init__(self, behind: _Any, names: frozenset[str]) -> None:
        object.__setattr__(self, "_behind", behind)
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> _Any:
        if name not in self._names:
            raise AttributeError(f"pycaffe has no {name!r}")
        return _walled(name, getattr(self._behind, name))

    def __setattr__(self, name: str, value: _Any) -> None:
        raise AttributeError(f"pycaffe lets nobody set {name!r}")


def _walled(name: str, value: _Any) -> _Any:
    if name == "net":
        return _Wall(value, _NET)
    if name == "share_with":
        return lambda other: value(other._behind)
    if name in ("blobs", "params", "layer_dict") and isinstance(value, _OrderedDict):
        return _OrderedDict((key, _item(name, item)) for key, item in value.items())
    return value


def _item(name: str, item: _Any) -> _Any:
    if name == "params":
        return [_Wall(blob, _BLOB) for blob in item]
    return _Wall(item, _BLOB if name == "blobs" else _LAYER)


def Net(  # noqa: N802
    path: str, phase: int, level: int = 0, stages: _Any = None, weights: _Any = None
) -> _Wall:
    assert isinstance(path, str)
    return _Wall(_caffe.Net(path, phase, level, stages, weights), _NET)


def get_solver(path: str) -> _Wall:
    assert isinstance(path, str)
    return _Wall(_caffe.get_solver(path), _SOLVER)


SGDSolver = NesterovSolver = AdaGradSolver = RMSPropSolver = AdaDeltaSolver = AdamSolver = (
    get_solver
)


def set_mode_cpu():
    _note("cpu")


def set_mode_gpu():
    _note("gpu")


def set_device(number: int) -> None:
    _note(f"device {number}")


def _note(call: str) -> None:
    """Write the call into a file of this process, in the folder that PUBLIC_CAFFE names."""
    if folder := _os.environ.get("PUBLIC_CAFFE"):
        with (_Path(folder) / f"{_os.getpid()}").open("a") as file:
            file.write(f"{call}\n")
