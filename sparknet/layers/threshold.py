"""Threshold: one above a bound, else zero."""

from __future__ import annotations

from typing import Any

from sparknet.layers.neuron import Neuron


class Threshold(Neuron):
    """y = x > threshold; no gradient (Caffe: threshold_layer.cpp).  Values: threshold."""

    type = "Threshold"
    stock = True
    field = "threshold_param"
    gradient = False

    def constants(self) -> dict[str, Any]:
        return {"threshold": self.options.threshold}
