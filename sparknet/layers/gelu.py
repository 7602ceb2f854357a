"""GELU: a value times the normal distribution at that value."""

from __future__ import annotations

from typing import Any

from sparknet.layers.neuron import Neuron


class GELU(Neuron):
    """y = x * Phi(x), exactly or by tanh (Hendrycks and Gimpel, 2016).  Values: approximate."""

    type = "GELU"
    field = "gelu_param"

    def constants(self) -> dict[str, Any]:
        return {"approximate": self.choice("approximate")}
