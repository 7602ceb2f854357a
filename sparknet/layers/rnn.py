"""RNN: the plain recurrent layer."""

from __future__ import annotations

from sparknet.layers.layer import Shape
from sparknet.layers.recurrent import Recurrent


class RNN(Recurrent):
    """h = tanh(W_xh x + b_h + W_hh h), o = tanh(W_ho h + b_o) (Caffe: rnn_layer.cpp)."""

    type = "RNN"
    stock = True
    states = 1

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        fixed: list[Shape] = [(hidden, static)] if static else []
        own: list[Shape] = [(hidden, hidden), (hidden, hidden), (hidden,)]
        return [(hidden, inputs), (hidden,), *fixed, *own]
