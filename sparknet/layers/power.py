"""Power: a shifted and scaled value raised to a power."""

from __future__ import annotations

from typing import Any

from sparknet.layers.neuron import Neuron


class Power(Neuron):
    """y = (shift + scale * x) ^ power (Caffe: power_layer.cpp).

    Values: power, scale, shift, and diff_scale = power * scale.
    """

    type = "Power"
    stock = True
    field = "power_param"
    copied = ("power", "scale", "shift")

    def constants(self) -> dict[str, Any]:
        options = self.options
        return {"diff_scale": options.power * options.scale}
