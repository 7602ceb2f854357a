"""A pycaffe with BVLC Caffe 1.0's public names and no others.

Nets, solvers and blobs are those of sparknet.caffe, behind a wall: what is not in Caffe's
python/caffe/_caffe.cpp and pycaffe.py raises, so that Net leans on nothing that is ours.
"""

from __future__ import annotations

from collections import OrderedDict
from types import ModuleType
from typing import Any

from sparknet import caffe

NET = frozenset(
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
SOLVER = frozenset(
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
BLOB = frozenset(
    {"channels", "count", "data", "diff", "height", "num", "reshape", "shape", "width"}
)
LAYER = frozenset({"blobs", "type"})
MODULE = frozenset({"Net", "TEST", "TRAIN", "get_solver", "set_mode_cpu", "set_random_seed"})


class Wall:
    """An object of which only some names are to be had; nothing can be set."""

    __slots__ = ("_behind", "_names")

    def __init__(self, behind: Any, names: frozenset[str]) -> None:
        object.__setattr__(self, "_behind", behind)
        object.__setattr__(self, "_names", names)

    def __getattr__(self, name: str) -> Any:
        if name not in self._names:
            raise AttributeError(f"pycaffe has no {name!r}")
        return _walled(name, getattr(self._behind, name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"pycaffe lets nobody set {name!r}")


def _walled(name: str, value: Any) -> Any:
    if name == "net":
        return Wall(value, NET)
    if name == "share_with":
        return lambda other: value(other._behind)
    if name in ("blobs", "params", "layer_dict") and isinstance(value, OrderedDict):
        return OrderedDict((key, _item(name, item)) for key, item in value.items())
    return value


def _item(name: str, item: Any) -> Any:
    if name == "params":
        return [Wall(blob, BLOB) for blob in item]
    return Wall(item, BLOB if name == "blobs" else LAYER)


def pycaffe() -> ModuleType:
    """The module.  Nets come from files alone, weights as in Caffe's two constructors."""
    module = ModuleType("caffe")

    def net(path: str, phase: int, level: int = 0, stages: Any = None, weights: Any = None) -> Wall:
        assert isinstance(path, str)
        return Wall(caffe.Net(path, phase, level, stages, weights), NET)

    def get_solver(path: str) -> Wall:
        assert isinstance(path, str)
        return Wall(caffe.get_solver(path), SOLVER)

    names = {name: getattr(caffe, name) for name in MODULE} | {"Net": net, "get_solver": get_solver}
    vars(module).update(names)
    return module
