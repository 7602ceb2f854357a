"""The operations of a layer, as cv2.dnn.Net.getFLOPS counts them."""

from __future__ import annotations

from math import prod

from sparknet.graph import Graph, Node
from sparknet.layers import Shape

_PER_OUTPUT = {
    "AbsVal": 1,
    "BNLL": 5,
    "ELU": 2,
    "Exp": 3,
    "PReLU": 1,
    "ReLU": 1,
    "ReLU6": 2,
    "Sigmoid": 3,
    "TanH": 1,
}
_PER_INPUT = {"BatchNorm": 3, "Scale": 2, "Softmax": 4}


def of(graph: Graph, node: Node) -> int:
    """Return the operations of one pass; 0 for a layer that only moves values."""
    inputs = [graph.blob_shapes[blob] for blob in node.bottom_ids]
    outputs = sum(prod(graph.blob_shapes[blob]) for blob in node.top_ids)
    if node.type in _PER_OUTPUT:
        return _PER_OUTPUT[node.type] * outputs
    if node.type in _PER_INPUT:
        return _PER_INPUT[node.type] * prod(inputs[0])
    if node.type == "Eltwise":
        return len(inputs) * prod(inputs[0])
    if node.type == "Power":
        return (2 if node.layer.options.power == 1 else 10) * outputs
    if node.type == "Convolution":
        kernel = prod(node.params[0].shape[2:])
        return outputs * (2 * kernel * inputs[0][1] + 1)
    if node.type == "Deconvolution":
        kernel = prod(node.params[0].shape[2:])
        return 2 * node.params[0].shape[0] * kernel * prod(inputs[0])
    if node.type == "InnerProduct":
        return 3 * node.params[0].shape[1] * outputs
    if node.type == "Pooling":
        options, height, width = node.layer.options, *inputs[0][2:]
        if not options.global_pooling:
            height = options.kernel_h or options.kernel_size
            width = options.kernel_w or options.kernel_size
        return int(outputs * (height * width + (options.pool == options.AVE)))
    if node.type.startswith("PriorBox"):
        priors = outputs // (2 * 4 * prod(inputs[0][2:]))
        return sum(prod(shape[2:]) for shape in inputs) * priors * 4
    if node.type == "LRN":
        return _lrn(node, inputs[0])
    if node.type == "MVN":
        axes = 1 if node.layer.options.across_channels else 2
        return 6 * prod(inputs[0]) + 3 * prod(inputs[0][:axes])
    return 0


def _lrn(node: Node, shape: Shape) -> int:
    """Count the sums of neighbouring channels, or of a window of pixels."""
    options, (images, channels, *sides) = node.layer.options, shape
    size, plane = options.local_size, prod(sides)
    if options.norm_region == options.WITHIN_CHANNEL:
        return int(prod(shape) * (2 * size * size + 2))
    half = (size - 1) // 2
    flops = images * plane * (2 * min(half, channels) + 4 * channels)
    return int(flops + (plane * (size + 2 * (channels - size)) if half < channels else 0))
