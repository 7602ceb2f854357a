"""Mish: a value times the hyperbolic tangent of its softplus."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class Mish(Neuron):
    """y = x * tanh(log(1 + exp x)) (Misra, 2019), as YOLOv4's nets have it."""

    type = "Mish"
