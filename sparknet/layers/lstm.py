"""LSTM: the long short-term memory layer."""

from __future__ import annotations

from sparknet.layers.layer import Shape
from sparknet.layers.recurrent import Recurrent


class LSTM(Recurrent):
    """Gates in the order input, forget, output, candidate (Caffe: lstm_layer.cpp).

    Bottoms: time x records x values, and ``cont`` of time x records, 0 where a sequence begins,
    else 1; then what is the same at all steps, records x values, if there is such an input.
    docs/cookbook.md has a time series.
    Exposed states: h, then c.
    """

    type = "LSTM"
    stock = True
    states = 2

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        gates = 4 * hidden
        fixed: list[Shape] = [(gates, static)] if static else []
        return [(gates, inputs), (gates,), *fixed, (gates, hidden)]
