"""Parameter: a learnable blob as a top of its own."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant
from sparknet.layers.layer import Param, Plan, Shape, exactly
from sparknet.layers.source import Source


class Parameter(Source):
    """Blob 0 is the top; it starts at zero (Caffe: parameter_layer.hpp)."""

    type = "Parameter"
    field = "parameter_param"
    tops = exactly(1)
    gradient = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        shape = self.declared(self.options.shape)
        return Plan(tops=(shape,), params=(Param(shape, constant()),))
