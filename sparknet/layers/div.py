"""Div: one value divided by another."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text
from sparknet.layers.spread import spread_shape


class Div(Layer):
    """The first bottom divided by the second, spread over each other by numpy's rules."""

    type = "Div"
    bottoms = exactly(2)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        top = spread_shape(bottoms)
        if top is None:
            texts = [shape_text(one) for one in bottoms]
            self.fail(f"the values {texts[0]} and {texts[1]} do not fit each other")
        return Plan((top,))
