"""AbsVal: the absolute value."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class AbsVal(Neuron):
    """y = |x|; Caffe refuses it in place (absval_layer.cpp)."""

    type = "AbsVal"
    stock = True
    in_place = False
