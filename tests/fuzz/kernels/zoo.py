"""Each layer of each net of sparknet/models, on one record and on three."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf import text_format

from sparknet import models
from sparknet.layers.layer import count
from sparknet.proto import caffe_pb2
from tests.fuzz.kernels.case import Case
from tests.fuzz.kernels.draw import IN_INT8
from tests.fuzz.kernels.oracle import LAYERS

KINDS = {
    "Convolution": "convolution",
    "Deconvolution": "deconvolution",
    "Pooling": "pooling",
    "InnerProduct": "inner product",
}
NAMES = ("x", "z", "v", "w")
"""Of the bottoms."""
MOST_WEIGHTS = 4e7
"""VGG's first product has 100 million, 4 GB of the oracle's: it gets fewer outputs."""


def zoo(precisions: tuple[str, ...]) -> Iterator[Case]:
    seen = set[str]()
    for name in models.NAMES:
        graph = models.net(name).graph("test")
        for node in graph.nodes:
            if node.type not in LAYERS or "Loss" in node.type:
                continue
            shapes = [tuple(graph.blob_shapes[i]) for i in node.bottom_ids]
            if len(shapes) > len(NAMES):
                continue
            case = one(node.layer.parameter, shapes, node.params)
            if str(case) not in seen:
                seen.add(str(case))
                yield from ways(case, precisions)


def one(parameter: Any, shapes: list[tuple[int, ...]], params: Any) -> Case:
    """A net of this layer alone, from the shapes of its bottoms."""
    layer = caffe_pb2.LayerParameter()
    layer.CopyFrom(parameter)
    layer.ClearField("bottom"), layer.ClearField("include"), layer.ClearField("param")
    del layer.top[:]
    layer.name, inputs = "l", {}
    is_sequence = layer.type in ("LSTM", "RNN", "GRU")
    names = ("x", "cont") if is_sequence else NAMES
    for name, shape in zip(names, shapes, strict=False):
        layer.bottom.append(name)
        inputs[name] = shape if is_sequence else (1, *shape[1:])
    layer.top.append("y")
    if layer.type == "InnerProduct" and count(params[0].shape) > MOST_WEIGHTS:
        layer.inner_product_param.num_output = int(MOST_WEIGHTS / count(params[0].shape[1:]))
    text = text_format.MessageToString(layer, as_one_line=True)
    kind = KINDS.get(layer.type, str(layer.type))
    return Case(kind, f"layer {{ {text} }}", inputs, threads=2)


def ways(case: Case, precisions: tuple[str, ...]) -> Iterator[Case]:
    """Trained; and in the test phase, where passes are others."""
    for precision in precisions:
        test = case.but(precision=precision, phase="TEST", backward=False, keep_blobs=False)
        if precision != "int8":
            yield case.but(precision=precision)
            yield test
        elif case.kind in IN_INT8:
            yield test
