"""Sigmoid: the logistic function."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class Sigmoid(Neuron):
    """y = 1 / (1 + exp(-x)) (Caffe: sigmoid_layer.cpp)."""

    type = "Sigmoid"
    stock = True
    squashes = "sigmoid"
    field = "sigmoid_param"
