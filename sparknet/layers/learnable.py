"""Learnable blobs: a shape with its filler, checked against each other."""

from __future__ import annotations

from sparknet.layers.fillers import check_filler
from sparknet.layers.layer import Layer, Param, Shape
from sparknet.proto import caffe_pb2


def learnable(layer: Layer, shape: Shape, filler: caffe_pb2.FillerParameter) -> Param:
    check_filler(layer.name, filler, shape)
    return Param(shape, filler)


def weights(layer: Layer, weight: Shape, bias: Shape) -> tuple[Param, ...]:
    """The weights and, with ``bias_term``, the biases of conv, InnerProduct and Embed."""
    options = layer.options
    found: tuple[Param, ...] = (learnable(layer, weight, options.weight_filler),)
    if options.bias_term:
        found += (learnable(layer, bias, options.bias_filler),)
    return found
