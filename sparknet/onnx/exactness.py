"""Which quotients must be exact.

a / b is a · (1 / b) in layers of Caffe, a last digit off: it makes 3 / 3 less than 1, which whoever
rounds down, compares or looks for the first of equal values would see.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparknet.onnx.folding import TYPES
from sparknet.onnx.source import OnnxNode

_STEEP = (
    *("ArgMax", "ArgMin", "Ceil", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "Round", "Sign", "TopK"),
)
"""Operators for which a last digit may make a difference."""
_MIXING = (
    *("AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "Einsum", "GRU", "Gemm"),
    *("GlobalAveragePool", "InstanceNormalization", "LSTM", "LayerNormalization", "MatMul", "RNN"),
    *("ReduceL1", "ReduceL2", "ReduceMean", "ReduceSum", "ReduceSumSquare"),
)
"""Operators whose results are sums, of which nobody knows the last digit."""


def exact_quotients(nodes: Sequence[OnnxNode]) -> set[str]:
    """The values that are read by a steep operator, through others that do not mix them."""
    found: set[str] = set()
    for node in reversed(nodes):
        if _is_steep(node) or (node.op not in _MIXING and not found.isdisjoint(node.outputs)):
            found.update(node.inputs)
    found.discard("")
    return found


def _is_steep(node: OnnxNode) -> bool:
    if node.op == "Cast":
        to: Any = TYPES.get(node.attributes.get("to", 0))
        return to is not None and to not in (_FLOATS)
    if node.op == "GridSample":
        return node.attributes.get("mode") == "nearest"
    return node.op in _STEEP


_FLOATS = {TYPES[number] for number in (1, 10, 11, 16)}
