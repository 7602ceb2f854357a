"""TanH: the hyperbolic tangent."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class TanH(Neuron):
    """y = tanh(x) (Caffe: tanh_layer.cpp)."""

    type = "TanH"
    stock = True
    field = "tanh_param"
