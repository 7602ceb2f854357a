"""Flatten: a run of axes becomes one."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, shape_text


class Flatten(Layer):
    """Caffe: flatten_layer.cpp."""

    type = "Flatten"
    stock = True
    is_view = True
    field = "flatten_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        start = self.axis(self.options.axis, bottom)
        end = self.axis(self.options.end_axis, bottom, "end_axis") + 1
        if start > end:
            self.fail(f"end_axis {end - 1} lies before axis {start} of {shape_text(bottom)}")
        top = (*bottom[:start], count(bottom[start:end]), *bottom[end:])
        return Plan((top,), values={"axis": start, "end_axis": end - 1})
