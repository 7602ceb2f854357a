"""Caffe's files as OpenCV 4 reads them (OpenCV: modules/dnn/src/caffe/caffe_importer.cpp)."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from math import sqrt
from typing import TypeAlias

import numpy as np

from sparknet.errors import LayerError, SpecError
from sparknet.graph.state import filter_net, net_state
from sparknet.layers import Shape
from sparknet.proto import Model, caffe_pb2, parse_model, parse_text, read_model, upgrade_net
from sparknet.proto.blob_file import Array
from sparknet.proto.byte_source import open_file
from sparknet.proto.model import LayerArrays
from sparknet.proto.text_tokens import Unknown

Buffer: TypeAlias = "bytes | bytearray | memoryview | Array"
Source: TypeAlias = "str | os.PathLike[str] | Buffer"
Arrays: TypeAlias = "list[Array | None]"


@dataclass
class Network:
    """Layers in OpenCV's order and under its names; number 0 is the inputs."""

    name: str = ""
    inputs: dict[str, Shape] = field(default_factory=dict)
    layers: list[caffe_pb2.LayerParameter] = field(default_factory=list)
    arrays: list[Arrays] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    """Names of the text whose layers OpenCV calls otherwise."""

    def number(self, name: str) -> int:
        """Return a layer's number, or -1."""
        names = ["_input", *(layer.name for layer in self.layers)]
        if name not in names:
            name = self.aliases.get(name, name)
        return names.index(name) if name in names else -1

    def ends(self) -> list[int]:
        """Return the numbers of the layers whose outputs no layer reads."""
        bottoms = {bottom for layer in self.layers for bottom in layer.bottom}
        numbered = enumerate(self.layers, start=1)
        return [number for number, layer in numbered if bottoms.isdisjoint(layer.top)]


def read_network(prototxt: Source, caffemodel: Source | None) -> Network:
    """Return the layers and weights of two files, or of their contents."""
    text, name = _text(prototxt)
    skipped: list[Unknown] = []
    raw = parse_text(text, caffe_pb2.NetParameter, name, skipped)
    if not (raw.layer or raw.layers):
        raise SpecError(f"{name}: the file has no layers; readNetFromCaffe takes a net's prototxt")
    names, shapes = list(raw.input), _field_shapes(raw)
    net = filter_net(net := upgrade_net(raw), net_state(net, caffe_pb2.TEST))
    weights = _weights(caffemodel)
    if names and net.layer and net.layer[0].type == "Input" and list(net.layer[0].top) == names:
        del net.layer[0]
    return _Renaming(net, dict(zip(names, shapes, strict=True)), weights).network


def _text(source: Source) -> tuple[bytes, str]:
    if isinstance(source, str | os.PathLike):
        with open_file(source) as file:
            return file.read(), os.fspath(source)
    return bytes(source), "<buffer>"


def _weights(source: Source | None) -> Model | None:
    if isinstance(source, str | os.PathLike):
        return read_model(source) if os.fspath(source) else None
    return parse_model(bytes(source)) if source is not None and len(source) else None


def _field_shapes(net: caffe_pb2.NetParameter) -> list[Shape]:
    """Return the sizes of the net's own inputs; () for one without."""
    if net.input_shape:
        shapes = [tuple(shape.dim) for shape in net.input_shape]
    else:
        dims = list(net.input_dim)
        shapes = [tuple(dims[start : start + 4]) for start in range(0, len(dims), 4)]
    return [*shapes, *[()] * len(net.input)][: len(net.input)]


class _Renaming:
    """Gives each layer a name of its own, and each top the name of its layer."""

    def __init__(
        self, net: caffe_pb2.NetParameter, inputs: dict[str, Shape], model: Model | None
    ) -> None:
        self.network = Network(net.name, inputs)
        self._uses: Counter[str] = Counter()
        self._blobs = {name: name for name in inputs}
        pairs = zip(model.net.layer, model.arrays, strict=True) if model else ()
        self._stored: dict[str, list[Arrays]] = {}
        for stored, arrays in pairs:
            if arrays:
                self._stored.setdefault(stored.name, []).append(arrays)
        for layer in net.layer:
            self._add(layer)

    def _add(self, source: caffe_pb2.LayerParameter) -> None:
        if source.type == "Input":
            shapes = [tuple(shape.dim) for shape in source.input_param.shape]
            for index, top in enumerate(source.top):
                one = shapes[min(index, len(shapes) - 1)] if shapes else ()
                self.network.inputs[top] = one
                self._blobs[top] = top
            return
        layer = caffe_pb2.LayerParameter()
        layer.CopyFrom(source)
        layer.name = self._unused(source.name)
        layer.untrusted = True
        for rules in (layer.include, layer.exclude, layer.blobs):
            del rules[:]
        stored = self._stored.get(source.name)
        arrays = stored.pop(0) if stored else []
        if layer.type == "Convolution" and layer.top and layer.top[0] not in self._uses:
            # OpenCV 4 calls a convolution after its blob.
            self.network.aliases[layer.name] = layer.top[0]
            layer.name = self._unused(layer.top[0])
        if layer.type == "ConvolutionDepthwise":
            layer.type = "Convolution"
        if layer.type == "Silence":  # the last layer of colorization: it returns its input
            layer.top.append(top_name(layer.name, 0))
        if layer.type == "BatchNorm" and _uses_batch_statistics(layer):
            arrays = self._normalize_first(layer, arrays)
        self._append(layer, arrays)

    def _normalize_first(self, layer: caffe_pb2.LayerParameter, arrays: Arrays) -> Arrays:
        """Put MVN before a BatchNorm that would use its batch's statistics."""
        mvn = caffe_pb2.LayerParameter(type="MVN", bottom=layer.bottom, top=layer.top)
        mvn.name = self._unused(f"{layer.name}/mvn")
        mvn.mvn_param.eps = layer.batch_norm_param.eps
        self._append(mvn, [])
        layer.batch_norm_param.use_global_stats = True
        del layer.bottom[:]
        layer.bottom.append(layer.top[0])
        values = (np.zeros_like, np.ones_like)
        return [
            make(array) if array is not None else None
            for make, array in zip(values, arrays, strict=False)
        ] + arrays[2:]

    def _append(self, layer: caffe_pb2.LayerParameter, arrays: Arrays) -> None:
        for index, bottom in enumerate(layer.bottom):
            if bottom not in self._blobs:
                raise LayerError(layer.name, f"no layer before it has the top '{bottom}'")
            layer.bottom[index] = self._blobs[bottom]
        for index, top in enumerate(layer.top):
            self._blobs[top] = layer.top[index] = top_name(layer.name, index)
        self.network.layers.append(layer)
        self.network.arrays.append(arrays)

    def _unused(self, name: str) -> str:
        """Return the name, with a number where another layer has it, as OpenCV does."""
        uses = self._uses[name]
        self._uses[name] += 1
        return f"{name}_{uses}" if uses else name


def top_name(layer: str, index: int) -> str:
    """Return what a layer's output is called in our net; no input has such a name."""
    return f"{layer}#{index}"


def _uses_batch_statistics(layer: caffe_pb2.LayerParameter) -> bool:
    options = layer.batch_norm_param
    return options.HasField("use_global_stats") and not options.use_global_stats


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
    for name in ("min_size", "max_size", "aspect_ratio"):
        options.ClearField(name)
    options.width.extend(width for width, _ in boxes)
    options.height.extend(height for _, height in boxes)


def _silence(layer: caffe_pb2.LayerParameter) -> None:
    layer.type = "Split"
    del layer.bottom[1:]


_CHANGES = {"PriorBox": _prior_box, "Silence": _silence}
