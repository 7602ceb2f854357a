"""Clip: values held between two bounds."""

from __future__ import annotations

from typing import Any

from sparknet.layers.neuron import Neuron


class Clip(Neuron):
    """y = max(min, min(x, max)) (Caffe: clip_layer.cpp).  Values: min, max."""

    type = "Clip"
    stock = True
    field = "clip_param"

    def constants(self) -> dict[str, Any]:
        options = self.options
        return {"min": options.min, "max": options.max}
