"""Im2col: the patches under a sliding window, laid out as channels."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, shape_text
from sparknet.layers.window import check_outputs, read_window


class Im2col(Layer):
    """Caffe: im2col_layer.cpp."""

    type = "Im2col"
    stock = True
    field = "convolution_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        axis = self.axis(self.options.axis, bottom)
        sizes = bottom[axis + 1 :]
        if not sizes:
            self.fail(f"needs a spatial axis after axis {axis} of the shape {shape_text(bottom)}")
        window = read_window(self, len(sizes))
        top_sizes = window.shrink(sizes)
        check_outputs(self, bottom, window, top_sizes)
        channels = bottom[axis] * count(window.kernel)
        values = {"axis": axis, **window.values()}
        return Plan(((*bottom[:axis], channels, *top_sizes),), values=values)
