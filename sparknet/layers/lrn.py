"""LRN: local response normalisation, across channels or within one."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import MAX_COUNT, Layer, Plan, Shape, count
from sparknet.layers.pooling import check_image


class LRN(Layer):
    """Caffe: lrn_layer.cpp.  Within a channel ``k`` is ignored."""

    type = "LRN"
    stock = True
    field = "lrn_param"
    tolerates_int8 = True
    copied = ("alpha", "beta", "k", "norm_region")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        size = options.local_size
        if size % 2 == 0 or size > MAX_COUNT:
            self.fail(f"local_size must be odd and below 2^31; it is {size}")
        bottom = check_image(self, bottoms[0])
        values = {"local_size": size}
        return Plan((bottom,), values=values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        size: int = plan.values["local_size"]
        _, channels, high, wide = bottoms[0]
        across = plan.values["norm_region"] == "across_channels"
        window = min(size, channels) if across else min(size, high) * min(size, wide)
        return count(bottoms[0]) * window
