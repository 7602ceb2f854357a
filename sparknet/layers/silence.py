"""Silence: reads blobs that no other layer reads."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, at_least, exactly


class Silence(Layer):
    """Keeps its bottoms from becoming net outputs (Caffe: silence_layer.cpp)."""

    type = "Silence"
    stock = True
    is_view = True
    bottoms = at_least(1)
    tops = exactly(0)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return Plan(tops=())
