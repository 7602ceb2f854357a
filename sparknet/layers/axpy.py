"""Axpy: a scale for every channel times x, plus y."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text


class Axpy(Layer):
    """axpy_layer.cpp of SENet.  Bottoms: scale (N, C) or (N, C, 1, 1), x and y."""

    type = "Axpy"
    bottoms = exactly(3)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        scale, x, y = bottoms
        if x != y:
            self.fail(f"x {shape_text(x)} and y {shape_text(y)} must have one shape")
        if len(x) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); x is {shape_text(x)}")
        if scale not in (x[:2], (*x[:2], 1, 1)):
            self.fail(
                f"the scale {shape_text(scale)} must have one value for each of the "
                f"{shape_text(x[:2])} channels of x"
            )
        return Plan((x,))
