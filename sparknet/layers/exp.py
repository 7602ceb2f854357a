"""Exp: a base raised to a scaled and shifted value."""

from __future__ import annotations

import math
from typing import Any

from sparknet.layers.layer import Layer
from sparknet.layers.neuron import Neuron


def log_of_base(layer: Layer, base: float) -> float:
    """ln(base), where -1 stands for e (Caffe: exp_layer.cpp, log_layer.cpp)."""
    if base == -1:
        return 1.0
    if not 0 < base < math.inf:
        layer.fail(f"base {base:g} must be positive and finite, or -1 for e")
    return math.log(base)


class Exp(Neuron):
    """y = base ^ (shift + scale * x) (Caffe: exp_layer.cpp).

    Values: inner_scale and outer_scale, so that y = outer_scale * exp(inner_scale * x).
    """

    type = "Exp"
    stock = True
    field = "exp_param"

    def constants(self) -> dict[str, Any]:
        options = self.options
        log_base = log_of_base(self, options.base)
        try:
            outer_scale = math.exp(log_base * options.shift)
        except OverflowError:
            self.fail(f"base {options.base:g} to the power shift {options.shift:g} is too large")
        return {"inner_scale": log_base * options.scale, "outer_scale": outer_scale}
