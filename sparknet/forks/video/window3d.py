"""The options that C3D's layers call otherwise: one size for height and width, one for time."""

from __future__ import annotations

from sparknet.layers.layer import Layer
from sparknet.proto import caffe_pb2

_SIZES = {"kernel_size": "kernel_depth", "stride": "temporal_stride", "pad": "temporal_pad"}
_KEPT = ("num_output", "bias_term", "group", "weight_filler", "bias_filler")


class Window3D(Layer):
    """The options of a Convolution or Deconvolution that stand in convolution3d_param."""

    stock = False
    field = "convolution3d_param"
    fields = ("convolution_param",)

    def __init__(self, parameter: caffe_pb2.LayerParameter, phase: int) -> None:
        super().__init__(parameter, phase)
        given = (
            parameter.convolution3d_param
            if parameter.HasField("convolution3d_param")
            else parameter.convolution_param
        )
        self._options = as_convolution(self, given)

    @property
    def options(self) -> caffe_pb2.ConvolutionParameter:
        return self._options


def as_convolution(
    layer: Layer, options: caffe_pb2.Convolution3DParameter | caffe_pb2.ConvolutionParameter
) -> caffe_pb2.ConvolutionParameter:
    """The same convolution in Caffe's words: a size for each axis (time, height, width)."""
    made = caffe_pb2.ConvolutionParameter()
    for name in _KEPT:
        if options.HasField(name):
            value = getattr(options, name)
            if isinstance(value, caffe_pb2.FillerParameter):
                getattr(made, name).CopyFrom(value)
            else:
                setattr(made, name, value)
    if options.filter_group != 1:
        layer.fail(f"filter_group must be 1; it is {options.filter_group}")
    if not options.HasField("kernel_depth"):
        layer.fail("needs kernel_depth, the kernel's size along time")
    defaults = {"kernel_size": None, "stride": 1, "pad": 0}
    for name, along_time in _SIZES.items():
        size = _one(layer, options, name, defaults[name])
        getattr(made, name).extend([getattr(options, along_time), size, size])
    return made


def _one(
    layer: Layer,
    options: caffe_pb2.Convolution3DParameter | caffe_pb2.ConvolutionParameter,
    name: str,
    default: int | None,
) -> int:
    given = getattr(options, name)
    if isinstance(options, caffe_pb2.Convolution3DParameter):
        given = [given] if options.HasField(name) else []
    if not given and default is not None:
        return default
    if len(given) != 1:
        layer.fail(f"{name} must be given once, for height and width")
    return int(given[0])
