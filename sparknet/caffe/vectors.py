"""The vectors that pycaffe's C++ module hands out, as lists.

Programs ask for their types by name: ``type(net.params["conv1"]) is caffe._caffe.BlobVec``.
BlobVec and RawBlobVec, which Python layers see as well, are in `sparknet.layers.user_layer`.
"""

from __future__ import annotations

from typing import Any


class LayerVec(list[Any]):
    """``net.layers``."""


class NetVec(list[Any]):
    """``solver.test_nets``."""


class StringVec(list[str]):
    """Names of layers or blobs."""


class IntVec(list[int]):
    """Numbers of blobs."""


class DtypeVec(list[float]):
    """Loss weights."""


class BoolVec(list[bool]):
    """The ``propagate_down`` of a Python layer."""
