"""BatchNorm layers that declare their three statistics as trained parameters.

Caffe: upgrade_proto.cpp, UpgradeNetBatchNorm.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparknet.proto import caffe_pb2


def needed(net: caffe_pb2.NetParameter) -> bool:
    return any(True for _ in _old(net))


def upgrade(net: caffe_pb2.NetParameter) -> None:
    """The solver must not touch the statistics."""
    for layer in _old(net):
        for param in layer.param:
            param.lr_mult = 0
            param.decay_mult = 0


def _old(net: caffe_pb2.NetParameter) -> Iterator[caffe_pb2.LayerParameter]:
    return (layer for layer in net.layer if layer.type == "BatchNorm" and len(layer.param) == 3)
