"""BNLL: a softened ReLU."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class BNLL(Neuron):
    """y = log(1 + exp(x)) (Caffe: bnll_layer.cpp)."""

    type = "BNLL"
    stock = True
