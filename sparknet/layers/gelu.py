"""GELU: a value times the normal distribution at that value."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class GELU(Neuron):
    """y = x * Phi(x), exactly or by tanh (Hendrycks and Gimpel, 2016).  Values: approximate."""

    type = "GELU"
    field = "gelu_param"
    copied = ("approximate",)
