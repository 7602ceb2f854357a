"""ReLU6: a ReLU that stops at six."""

from __future__ import annotations

from sparknet.layers.neuron import Neuron


class ReLU6(Neuron):
    """y = min(max(x, 0), 6); of the MobileNet forks."""

    type = "ReLU6"
