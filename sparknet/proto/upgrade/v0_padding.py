"""Padding layers of the first generation, folded into the layer that reads them.

Caffe: upgrade_proto.cpp, UpgradeV0PaddingLayers.
"""

from __future__ import annotations

from sparknet.errors import LayerError
from sparknet.proto import caffe_pb2

V1Layer = caffe_pb2.V1LayerParameter


def fold(net: caffe_pb2.NetParameter) -> list[V1Layer]:
    """Copies of the layers, without the padding layers."""
    folded: list[V1Layer] = []
    makers: dict[str, V1Layer | None] = dict.fromkeys(net.input)
    for layer in net.layers:
        if layer.layer.type != "padding":
            copy = V1Layer()
            copy.CopyFrom(layer)
            folded.append(copy)
        _fold_bottoms(layer, folded, makers)
        makers.update(dict.fromkeys(layer.top, layer))
    return folded


def _fold_bottoms(layer: V1Layer, folded: list[V1Layer], makers: dict[str, V1Layer | None]) -> None:
    for index, blob in enumerate(layer.bottom):
        if blob not in makers:
            raise LayerError(layer.layer.name, f"unknown bottom '{blob}'")
        maker = makers[blob]
        if maker is not None and maker.layer.type == "padding":
            _check(layer, maker)
            folded[-1].layer.pad = maker.layer.pad
            folded[-1].bottom[index] = maker.bottom[0]


def _check(layer: V1Layer, padding: V1Layer) -> None:
    name = layer.layer.name
    if layer.layer.type not in ("conv", "pool"):
        raise LayerError(name, f"type '{layer.layer.type}' cannot read a padding layer")
    if len(layer.bottom) != 1:
        raise LayerError(name, f"{len(layer.bottom)} bottoms, one of them a padding layer")
    if len(padding.bottom) != 1 or len(padding.top) != 1:
        raise LayerError(padding.layer.name, "a padding layer has one bottom and one top")
