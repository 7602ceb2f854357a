"""Input: blobs that the caller fills."""

from __future__ import annotations

from sparknet.layers.layer import Plan
from sparknet.layers.source_layer import SourceLayer


class Input(SourceLayer):
    """One shape for all tops, or one for each (Caffe: input_layer.cpp)."""

    type = "Input"
    stock = True
    is_input = True
    is_view = True
    field = "input_param"

    def survey(self) -> Plan:
        shapes = [self.declared(shape) for shape in self.options.shape]
        tops = len(self.parameter.top)
        if len(shapes) not in (0, 1, tops):
            self.fail(f"{tops} tops need one shape, {tops} shapes or none; there are {len(shapes)}")
        if len(shapes) < 2:
            shapes = (shapes or [()]) * tops
        return Plan(tops=tuple(shapes))
