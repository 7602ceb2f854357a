"""Reorg: blocks of pixels become channels, or channels become blocks of pixels."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape
from sparknet.layers.pooling import check_image


class Reorg(Layer):
    """reorg_layer.cpp of YOLOv2, whose order of values it keeps: it is Darknet's, in which the
    sizes of the input, not of the output, are counted in channels of blocks.

    Values: stride, reverse.
    """

    type = "Reorg"
    field = "reorg_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        num, channels, high, wide = bottom = check_image(self, bottoms[0])
        stride, reverse = self.options.stride, self.options.reverse
        if stride < 1:
            self.fail(f"stride must be positive; it is {stride}")
        if channels % (stride * stride):
            self.fail(
                f"the {channels} channels do not divide by the stride's square, {stride * stride}"
            )
        if not reverse and (high % stride or wide % stride):
            self.fail(f"{high} x {wide} pixels do not divide by the stride {stride}")
        top: Shape = (num, channels * stride**2, high // stride, wide // stride)
        if reverse:
            top = (num, channels // stride**2, high * stride, wide * stride)
        del bottom
        return Plan((top,), values={"stride": stride, "reverse": reverse})
