"""Input: blobs that the caller fills."""

from __future__ import annotations

from sparknet.layers.layer import Plan, shape_text
from sparknet.layers.source_layer import SourceLayer


class Input(SourceLayer):
    """One shape for all tops, or one for each (Caffe: input_layer.cpp).

    Records lie along the first axis, or along the one with which layers accept more of them;
    ``record_axis`` names it for each top where no layer tells.
    """

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
        for axis, shape in zip(self.options.record_axis, shapes, strict=False):
            if not 0 <= axis < len(shape):
                self.fail(f"record_axis {axis}: the shape is {shape_text(shape)}")
        return Plan(tops=tuple(shapes))
