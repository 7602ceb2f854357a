"""Embed: a row of a table for every index."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape
from sparknet.layers.learnable import weights


class Embed(Layer):
    """Caffe: embed_layer.cpp.  No gradient reaches the indices."""

    type = "Embed"
    stock = True
    field = "embed_param"
    gathers = True
    copied = ("bias_term",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for name in ("num_output", "input_dim"):
            if getattr(options, name) < 1:
                self.fail(f"{name} must be positive; it is {getattr(options, name)}")
        outputs, rows = options.num_output, options.input_dim
        params = weights(self, (rows, outputs), (outputs,))
        values = {"num_output": outputs, "input_dim": rows}
        return Plan(((*bottoms[0], outputs),), params, values)

    def takes(self, bottom: int) -> str:
        return "indices"
