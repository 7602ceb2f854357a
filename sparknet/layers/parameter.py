"""Parameter: a learnable blob as a top of its own."""

from __future__ import annotations

from sparknet.layers.fillers import constant
from sparknet.layers.layer import Param, Plan, exactly
from sparknet.layers.source_layer import SourceLayer


class Parameter(SourceLayer):
    """Blob 0 is the top; it starts at zero (Caffe: parameter_layer.hpp)."""

    type = "Parameter"
    stock = True
    field = "parameter_param"
    tops = exactly(1)
    gradient = True
    records = False

    def survey(self) -> Plan:
        shape = self.declared(self.options.shape)
        return Plan(tops=(shape,), params=(Param(shape, constant()),))
