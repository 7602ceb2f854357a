"""Clip: values held between two bounds."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class Clip(Neuron):
    """y = max(min, min(x, max)) (Caffe: clip_layer.cpp).  Values: min, max."""

    type = "Clip"
    stock = True
    field = "clip_param"
    copied = ("min", "max")
