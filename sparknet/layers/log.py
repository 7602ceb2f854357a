"""Log: the logarithm of a scaled and shifted value."""

from __future__ import annotations

from typing import Any

from sparknet.layers.exp import log_of_base
from sparknet.layers.neuron import Neuron


class Log(Neuron):
    """y = log_base(shift + scale * x) (Caffe: log_layer.cpp).

    Values: scale, shift, base_scale = 1 / ln(base), and diff_scale = scale / ln(base).
    """

    type = "Log"
    stock = True
    field = "log_param"
    copied = ("scale", "shift")

    def constants(self) -> dict[str, Any]:
        options = self.options
        log_base = log_of_base(self, options.base)
        if log_base == 0:
            self.fail("base 1 has no logarithm")
        return {"base_scale": 1 / log_base, "diff_scale": options.scale / log_base}
