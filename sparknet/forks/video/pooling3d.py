"""Pooling3D: pooling over time, height and width."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import MAX_COUNT, Layer, Plan, Shape, count, shape_text
from sparknet.layers.pooling import window_work


class Pooling3D(Layer):
    """pool3d_layer.cpp of C3D: MAX or AVE; sizes are rounded up, and time takes no padding.

    The first version of C3D has the options in ``pooling_param``.
    Values: method, and kernel, stride and pad for time, height and width.
    """

    type = "Pooling3D"
    field = "pooling3d_param"
    fields = ("pooling_param",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        if len(bottom) != 5:
            self.fail(
                "takes 5 axes (num, channels, time, height, width); "
                f"the input is {shape_text(bottom)}"
            )
        given = self.parameter.HasField("pooling3d_param")
        options = self.options if given else self.parameter.pooling_param
        method = type(options).PoolMethod.Name(options.pool).lower()
        if method == "stochastic":
            self.fail("STOCHASTIC pooling is not supported over time; use MAX or AVE")
        if not options.HasField("kernel_size") or not options.HasField("kernel_depth"):
            self.fail("needs kernel_size for height and width, and kernel_depth for time")
        kernel = (options.kernel_depth, options.kernel_size, options.kernel_size)
        stride = (options.temporal_stride, options.stride, options.stride)
        pad = (0, options.pad, options.pad)
        self._check(kernel, stride, pad)
        sizes = tuple(
            -(-(size + 2 * p - k) // s) + 1
            for size, k, s, p in zip(bottom[2:], kernel, stride, pad, strict=True)
        )
        if min(sizes) < 1 or not count(bottom[2:]):
            self.fail(
                f"the kernel {shape_text(kernel)} does not fit the {shape_text(bottom)} input"
            )
        values = {"method": method, "kernel": kernel, "stride": stride, "pad": pad}
        return Plan(((*bottom[:2], *sizes),), values=values)

    def work(self, plan: Plan, bottoms: Sequence[Shape]) -> int:
        return window_work(plan, bottoms[0][2:])

    def _check(self, kernel: Shape, stride: Shape, pad: Shape) -> None:
        if min(kernel) < 1 or min(stride) < 1 or max(*kernel, *stride) > MAX_COUNT:
            self.fail(
                "kernel and stride must be positive and below 2^31; "
                f"they are {shape_text(kernel)} and {shape_text(stride)}"
            )
        if pad[1] >= kernel[1]:
            self.fail(f"pad {pad[1]} must be smaller than the kernel {kernel[1]}")
