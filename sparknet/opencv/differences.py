"""Layers of Caffe that compute what OpenCV 4 computes, where the two differ."""

from __future__ import annotations

from math import sqrt

from sparknet.proto import caffe_pb2
from sparknet.proto.model import LayerArrays


def as_caffe(layer: caffe_pb2.LayerParameter, arrays: LayerArrays) -> caffe_pb2.LayerParameter:
    """Return the layer, or one in its place whose result is OpenCV's."""
    has_bias = not (layer.HasField("convolution_param") and len(arrays) == 1)
    change = _CHANGES.get(layer.type)
    if change is None and has_bias:
        return layer
    copy = caffe_pb2.LayerParameter()
    copy.CopyFrom(layer)
    if not has_bias:  # OpenCV counts the blobs: a script sets the weights of colorization alone
        copy.convolution_param.bias_term = False
    if change is not None:
        change(copy)
    return copy


def _prior_box(layer: caffe_pb2.LayerParameter) -> None:
    """OpenCV clips unless the text says otherwise, and takes sizes that are no whole numbers."""
    options = layer.prior_box_param
    if not options.HasField("clip"):
        options.clip = True
    sizes = [*options.min_size, *options.max_size]
    if len(options.min_size) != 1 or all(size == int(size) for size in sizes):
        return
    least = options.min_size[0]
    boxes = [(least, least), *((sqrt(least * size),) * 2 for size in options.max_size)]
    ratios = [1.0]
    for ratio in options.aspect_ratio:
        if all(abs(ratio - other) >= 1e-6 for other in ratios):
            ratios += [ratio, 1 / ratio] if options.flip else [ratio]
    boxes += [(least * sqrt(ratio), least / sqrt(ratio)) for ratio in ratios[1:]]
    layer.type = "PriorBoxClustered"
    for field in ("min_size", "max_size", "aspect_ratio"):
        options.ClearField(field)
    options.width.extend(width for width, _ in boxes)
    options.height.extend(height for _, height in boxes)


def _silence(layer: caffe_pb2.LayerParameter) -> None:
    layer.type = "Split"
    del layer.bottom[1:]


_CHANGES = {"PriorBox": _prior_box, "Silence": _silence}
