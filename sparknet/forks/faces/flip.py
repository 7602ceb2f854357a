"""Flip: images turned round."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape
from sparknet.layers.pooling import check_image


class Flip(Layer):
    """flip_layer.cpp of happynear's fork.  Values: flip_width, flip_height."""

    type = "Flip"
    field = "flip_param"
    copied = ("flip_width", "flip_height")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = check_image(self, bottoms[0])
        return Plan((bottom,))
