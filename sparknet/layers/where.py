"""Where: of two values the first where a condition holds, else the second."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text
from sparknet.layers.spread import spread_shape


class Where(Layer):
    """Bottoms: a condition, which holds where it is not 0, and the two values.

    The value that is not taken does not matter, infinite or not a number.  All three are spread
    over each other by numpy's rules.  The condition has no gradient.
    """

    type = "Where"
    bottoms = exactly(3)
    unforced = (0,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        top = spread_shape(bottoms)
        if top is None:
            texts = [shape_text(one) for one in bottoms]
            self.fail(
                f"the condition {texts[0]} and the values {texts[1]} and {texts[2]} "
                "do not fit each other"
            )
        return Plan((top,))
