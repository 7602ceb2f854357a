"""Swish: x times its own sigmoid."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class Swish(Neuron):
    """y = x * sigmoid(beta * x) (Caffe: swish_layer.cpp).  Values: beta."""

    type = "Swish"
    stock = True
    field = "swish_param"
    copied = ("beta",)
