"""LSTMUnit: one step of an LSTM, after its weights."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text


class LSTMUnit(Layer):
    """Computes the next cell and hidden state from the cell (1 x streams x units), the gates
    (1 x streams x 4 units) and cont (1 x streams) (Caffe: lstm_unit_layer.cpp).

    Values: streams, units.
    """

    type = "LSTMUnit"
    stock = True
    bottoms = exactly(3)
    tops = exactly(2)
    unforced = (2,)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        cell, gates, cont = bottoms
        if len(cell) != 3 or cell[0] != 1:
            self.fail(f"the cell must be 1 x streams x units; it is {shape_text(cell)}")
        streams, units = cell[1:]
        if gates != (1, streams, 4 * units):
            self.fail(
                f"the gates must be 1 x {streams} x {4 * units}; they are {shape_text(gates)}"
            )
        if cont != (1, streams):
            self.fail(f"the sequence indicators must be 1 x {streams}; they are {shape_text(cont)}")
        return Plan(tops=(cell, cell), values={"streams": streams, "units": units})
