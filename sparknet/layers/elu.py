"""ELU: the exponential linear unit."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class ELU(Neuron):
    """y = x above zero, alpha * (exp(x) - 1) below (Caffe: elu_layer.cpp).  Values: alpha."""

    type = "ELU"
    stock = True
    field = "elu_param"
    copied = ("alpha",)
