"""LSTM: the long short-term memory layer."""

from __future__ import annotations

from sparknet.layers.layer import Shape
from sparknet.layers.recurrent import Recurrent


class LSTM(Recurrent):
    """Gates in the order input, forget, output, candidate (Caffe: lstm_layer.cpp).

    Exposed states: h, then c.
    """

    type = "LSTM"
    stock = True
    states = 2

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        gates = 4 * hidden
        fixed: list[Shape] = [(gates, static)] if static else []
        return [(gates, inputs), (gates,), *fixed, (gates, hidden)]
