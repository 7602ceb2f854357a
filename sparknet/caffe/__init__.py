"""The embedded pycaffe: the names of BVLC Caffe 1.0's Python module.

`sparknet.caffe.alias` makes a plain ``import caffe`` mean this package.
Differences from pycaffe, each with its reason: docs/compatibility.md.
"""

from __future__ import annotations

from sparknet.caffe import io, proto
from sparknet.caffe.net import Net
from sparknet.caffe.net_spec import NetSpec, layers, params, to_proto
from sparknet.caffe.proto.caffe_pb2 import TEST, TRAIN

__version__ = "1.0.0"

__all__ = [
    "TEST",
    "TRAIN",
    "Net",
    "NetSpec",
    "__version__",
    "io",
    "layer_type_list",
    "layers",
    "params",
    "proto",
    "to_proto",
]


def layer_type_list() -> list[str]:
    """Every layer type, sorted by name."""
    from sparknet.layers import LAYERS

    return sorted(LAYERS)
