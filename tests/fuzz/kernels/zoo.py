"""Each layer of each net of sparknet/models, on one record and on three."""

import math
from collections.abc import Iterator

from google.protobuf import text_format

from sparknet import models
from sparknet.graph import Node
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
MOST_WEIGHTS, MOST_PRODUCTS = 4e7, 2e8
"""VGG's first product has 100 million weights, 4 GB of the oracle's: it gets fewer outputs. A layer
with more products gets a part of its image."""


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
            case = one(node, shapes)
            if str(case) not in seen:
                seen.add(str(case))
                yield from ways(case, precisions)


def one(node: Node, shapes: list[tuple[int, ...]]) -> Case:
    """A net of this layer alone, from the shapes of its bottoms."""
    layer = caffe_pb2.LayerParameter()
    layer.CopyFrom(node.layer.parameter)
    layer.ClearField("bottom"), layer.ClearField("include"), layer.ClearField("param")
    del layer.top[:]
    layer.name, inputs = "l", {}
    is_sequence = layer.type in ("LSTM", "RNN")
    part, least = 1 if is_sequence else divisor(node, shapes), 0
    if part > 1:
        values = node.plan.values
        least = max(
            d * (k - 1) + 1 for k, d in zip(values["kernel"], values["dilation"], strict=True)
        )
    for name, shape in zip(("x", "cont") if is_sequence else NAMES, shapes, strict=False):
        layer.bottom.append(name)
        sizes = (max(-(size // -part), min(size, least)) for size in shape[2:])
        inputs[name] = shape if is_sequence else (1, *shape[1:2], *sizes)
    layer.top.append("y")
    if layer.type == "InnerProduct" and count(node.params[0].shape) > MOST_WEIGHTS:
        outputs = int(MOST_WEIGHTS / count(node.params[0].shape[1:]))
        layer.inner_product_param.num_output = outputs
    text = text_format.MessageToString(layer, as_one_line=True)
    kind = KINDS.get(layer.type, str(layer.type))
    return Case(kind, f"layer {{ {text} }}", inputs, threads=2)


def divisor(node: Node, shapes: list[tuple[int, ...]]) -> int:
    """Of the sides of an image, so that few enough products are left."""
    if node.type not in ("Convolution", "Deconvolution"):
        return 1
    products = node.layer.products(node.plan, shapes) / max(1, shapes[0][0])
    return max(1, math.ceil(math.sqrt(products / MOST_PRODUCTS)))


def ways(case: Case, precisions: tuple[str, ...]) -> Iterator[Case]:
    """Trained; and in the test phase, where passes are others."""
    for precision in precisions:
        test = case.but(precision=precision, phase="TEST", backward=False, keep_blobs=False)
        if precision != "int8":
            yield case.but(precision=precision)
            yield test
        elif case.kind in IN_INT8:
            yield test
