"""DepthwiseConvolution: the MobileNet forks' name for a convolution with one group a channel."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.convolution import plan_convolution, window_products
from sparknet.layers.layer import Layer, Plan, Shape, at_least


class DepthwiseConvolution(Layer):
    """depthwise_conv_layer.cpp of yonghenglh6: on the CPU it is Convolution, ``group`` included."""

    type = "DepthwiseConvolution"
    field = "convolution_param"
    bottoms = at_least(1)
    tops = at_least(1)
    equal_counts = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return plan_convolution(self, bottoms)

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        return window_products(plan, plan.tops)
