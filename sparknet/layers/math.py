"""Math: a function of each value."""

from __future__ import annotations

from typing import Any

from sparknet.layers.neuron import Neuron


class Math(Neuron):
    """Sine or cosine; or the next whole number: below (FLOOR), above (CEIL), the nearest, halves to
    the even one (ROUND), or towards zero (TRUNC), whose gradients are zero.
    """

    type = "Math"
    field = "math_param"
    copied = ("function",)

    def constants(self) -> dict[str, Any]:
        if not self.options.HasField("function"):
            self.fail("function must be given: FLOOR, CEIL, ROUND, TRUNC, SIN or COS")
        return {}
