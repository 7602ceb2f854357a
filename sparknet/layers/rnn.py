"""RNN: the plain recurrent layer."""

from __future__ import annotations

from sparknet.layers.layer import Shape
from sparknet.layers.recurrent import Recurrent


class RNN(Recurrent):
    """h = tanh(W_xh x + b_h + W_hh h), o = tanh(W_ho h + b_o) (Caffe: rnn_layer.cpp).

    Bottoms: time x records x values, and ``cont`` of time x records, 0 where a sequence begins,
    else 1; then what is the same at all steps, records x values, if there is such an input.
    docs/cookbook.md has a time series.
    """

    type = "RNN"
    stock = True
    states = 1

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        fixed: list[Shape] = [(hidden, static)] if static else []
        own: list[Shape] = [(hidden, hidden), (hidden, hidden), (hidden,)]
        return [(hidden, inputs), (hidden,), *fixed, *own]
