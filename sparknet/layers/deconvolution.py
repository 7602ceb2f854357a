"""Deconvolution: the transpose of Convolution."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.convolution import plan_convolution, window_products
from sparknet.layers.layer import Layer, Plan, Shape, at_least


class Deconvolution(Layer):
    """Caffe: base_conv_layer.cpp, deconv_layer.cpp.  Weights are (in, out / group, kernel)."""

    type = "Deconvolution"
    stock = True
    field = "convolution_param"
    bottoms = at_least(1)
    tops = at_least(1)
    equal_counts = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        return plan_convolution(self, bottoms, reverse=True)

    def products(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        return window_products(plan, bottoms)

    def multiplies_narrow(self, plan: Plan) -> bool:
        return not plan.values["depthwise"]
