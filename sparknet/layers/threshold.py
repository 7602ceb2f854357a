"""Threshold: one above a bound, else zero."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class Threshold(Neuron):
    """y = x > threshold; no gradient (Caffe: threshold_layer.cpp).  Values: threshold."""

    type = "Threshold"
    stock = True
    field = "threshold_param"
    gradient = False
    copied = ("threshold",)
