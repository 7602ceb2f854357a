"""GRU: gated recurrent units."""

from __future__ import annotations

from sparknet.layers.layer import Shape
from sparknet.layers.recurrent import Recurrent


class GRU(Recurrent):
    """Gates in the order update, reset, candidate; h' = (1 - z) n + z h (Cho et al., 2014).

    Bottoms: time x records x values, and ``cont`` of time x records, 0 where a sequence begins,
    else 1; then what is the same at all steps, records x values, if there is such an input.
    docs/cookbook.md has a time series.
    ``reset_after`` gates the product of the hidden state and the candidate's weights, else the
    hidden state before it.  Parameters: weights of the input, biases, weights of the hidden state,
    bias of the candidate's product.  Values besides those of `Recurrent`: reset_after.
    """

    type = "GRU"
    states = 1
    copied = ("reset_after",)

    def weights(self, hidden: int, inputs: int, static: int) -> list[Shape]:
        if static:
            self.fail("takes no static input")
        return [(3 * hidden, inputs), (3 * hidden,), (3 * hidden, hidden), (hidden,)]
