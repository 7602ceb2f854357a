"""ReLU: the rectified linear unit."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class ReLU(Neuron):
    """y = x above zero, negative_slope * x below (Caffe: relu_layer.cpp).

    Values: negative_slope.
    """

    type = "ReLU"
    stock = True
    field = "relu_param"
    tolerates_int8 = True
    copied = ("negative_slope",)
