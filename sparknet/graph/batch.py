"""Changes the batch size in a net's description."""

from __future__ import annotations

from sparknet.graph.records import Outline
from sparknet.layers import LAYERS, TRAIN, Shape
from sparknet.layers.source_layer import SourceLayer
from sparknet.proto import caffe_pb2


def set_batch(net: caffe_pb2.NetParameter, batch: int) -> None:
    """Change the batch size of every layer that brings data in, along its batch axis."""
    sized = [  # a top may come twice: from a layer for training and one for testing
        (top, shape)
        for layer in net.layer
        for top, shape in zip(layer.top, _shapes(layer, len(layer.top)), strict=False)
    ]
    lists: dict[str, Shape] = {top: tuple(shape.dim) for top, shape in sized}
    axes = Outline(net.layer, TRAIN).input_axes(lists)
    for top, shape in sized:
        if axes[top] < len(shape.dim):
            shape.dim[axes[top]] = batch
    for layer in net.layer:
        for index in range(len(layer.dummy_data_param.num)):
            layer.dummy_data_param.num[index] = batch
        kind = LAYERS.get(layer.type)
        if (
            kind is not None
            and issubclass(kind, SourceLayer)
            and kind.has_batch_size
            and kind.field
        ):
            getattr(layer, kind.field).batch_size = batch


def _shapes(layer: caffe_pb2.LayerParameter, tops: int) -> list[caffe_pb2.BlobShape]:
    """Return the shapes that the description gives for the tops; one shape may stand for all."""
    shapes = [*layer.input_param.shape, *layer.dummy_data_param.shape]
    return shapes * tops if len(shapes) == 1 else shapes
