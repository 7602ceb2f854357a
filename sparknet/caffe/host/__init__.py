"""Layers that live in Python: the user's own, and those that read files.

Each type has a file and a line here, or in its fork's folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from sparknet.caffe.blob import ParamBlob
from sparknet.caffe.host.host import Host
from sparknet.forks import HOSTS as OF_FORKS
from sparknet.graph import Node

__all__ = ["HOSTS", "Host", "make_host"]

_MODULES = {
    # a type, and its module here; the class is called <Type>Host, in forks too
    "Data": "data",
    "DummyData": "dummy_data",
    "FocalLoss": "focal_loss",
    "HDF5Data": "hdf5_data",
    "HDF5Output": "hdf5_output",
    "ImageData": "image_data",
    "MemoryData": "memory_data",
    "MMDLoss": "mmd_loss",
    "Python": "python",
    "TripletLoss": "triplet_loss",
    "WindowData": "window_data",
}

HOSTS = {name: f"sparknet.caffe.host.{module}" for name, module in _MODULES.items()} | OF_FORKS


def make_host(node: Node, params: Sequence[ParamBlob], seed: int) -> Host:
    module = import_module(HOSTS[node.type])
    kind: type[Host] = getattr(module, f"{node.type}Host")
    return kind(node, params, seed)
