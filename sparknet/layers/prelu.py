"""PReLU: a ReLU whose negative slopes are learned."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant
from sparknet.layers.layer import Layer, Plan, Shape, count, shape_text
from sparknet.layers.learnable import learnable


class PReLU(Layer):
    """y = x above zero, slope * x below, one slope per channel or one for all.

    Caffe: prelu_layer.cpp.  Blob 0: the slopes, (channels,) or scalar.
    Values: channel_shared, outer, channels, inner.
    """

    type = "PReLU"
    stock = True
    field = "prelu_param"
    in_place = True
    copied = ("channel_shared",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        shape = bottoms[0]
        if len(shape) < 2:
            self.fail(f"the bottom needs at least 2 axes; its shape is {shape_text(shape)}")
        options = self.options
        slopes: Shape = () if options.channel_shared else (shape[1],)
        filler = options.filler if options.HasField("filler") else constant(0.25)
        values = {"outer": shape[0], "channels": shape[1], "inner": count(shape[2:])}
        return Plan(tops=(shape,), params=(learnable(self, slopes, filler),), values=values)
