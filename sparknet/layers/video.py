"""C3D (Tran et al., 2015) and other forks that read clips."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.convolution import Convolution, Deconvolution
from sparknet.layers.layer import MAX_COUNT, Layer, Plan, Shape, count, layer, shape_text
from sparknet.layers.pooling import window_work
from sparknet.proto import caffe_pb2

_SIZES = {"kernel_size": "kernel_depth", "stride": "temporal_stride", "pad": "temporal_pad"}
_KEPT = ("num_output", "bias_term", "group", "weight_filler", "bias_filler")


class Window3D(Layer):
    """The options of a Convolution or Deconvolution that stand in convolution3d_param."""

    field = "convolution3d_param"
    fields = ("convolution_param",)

    def __init__(self, parameter: caffe_pb2.LayerParameter, phase: int) -> None:
        super().__init__(parameter, phase)
        options = (
            parameter.convolution3d_param
            if parameter.HasField("convolution3d_param")
            else parameter.convolution_param
        )
        self._options = as_convolution(self, options)

    @property
    def options(self) -> caffe_pb2.ConvolutionParameter:
        return self._options


def as_convolution(
    layer: Layer, options: caffe_pb2.Convolution3DParameter | caffe_pb2.ConvolutionParameter
) -> caffe_pb2.ConvolutionParameter:
    """Return the same convolution in Caffe's words: a size for each axis (time, height, width)."""
    converted = caffe_pb2.ConvolutionParameter()
    for name in _KEPT:
        if options.HasField(name):
            value = getattr(options, name)
            if isinstance(value, caffe_pb2.FillerParameter):
                getattr(converted, name).CopyFrom(value)
            else:
                setattr(converted, name, value)
    if options.filter_group != 1:
        layer.fail(f"filter_group must be 1; it is {options.filter_group}")
    if not options.HasField("kernel_depth"):
        layer.fail("needs kernel_depth, the kernel's size along time")
    defaults = {"kernel_size": None, "stride": 1, "pad": 0}
    for name, along_time in _SIZES.items():
        size = _one(layer, options, name, defaults[name])
        getattr(converted, name).extend([getattr(options, along_time), size, size])
    return converted


def _one(
    layer: Layer,
    options: caffe_pb2.Convolution3DParameter | caffe_pb2.ConvolutionParameter,
    name: str,
    default: int | None,
) -> int:
    sizes = getattr(options, name)
    if isinstance(options, caffe_pb2.Convolution3DParameter):
        sizes = [sizes] if options.HasField(name) else []
    if not sizes and default is not None:
        return default
    if len(sizes) != 1:
        layer.fail(f"{name} must be given once, for height and width")
    return int(sizes[0])


@layer("Convolution3D")
class Convolution3D(Window3D, Convolution):
    """convolution3d_layer.cpp of C3D.  kernel_size, stride and pad are for height and width;
    kernel_depth, temporal_stride and temporal_pad for time, the axis before them.

    The first version of C3D has the options in ``convolution_param``."""


@layer("Deconvolution3D")
class Deconvolution3D(Window3D, Deconvolution):
    """deconvolution3d_layer.cpp of C3D.  kernel_size, stride and pad are for height and width;
    kernel_depth, temporal_stride and temporal_pad for time, the axis before them.

    The first version of C3D has the options in ``convolution_param``."""


@layer("Pooling3D")
class Pooling3D(Layer):
    """pool3d_layer.cpp of C3D: MAX or AVE; sizes are rounded up, and time takes no padding.

    The first version of C3D has the options in ``pooling_param``."""

    field = "pooling3d_param"
    fields = ("pooling_param",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        if len(bottom) != 5:
            self.fail(
                "takes 5 axes (num, channels, time, height, width); "
                f"the input is {shape_text(bottom)}"
            )
        has_options = self.parameter.HasField("pooling3d_param")
        options = self.options if has_options else self.parameter.pooling_param
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
