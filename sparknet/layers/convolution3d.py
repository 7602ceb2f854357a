"""Convolution3D: Convolution over time, height and width, as C3D writes it."""

from __future__ import annotations

from sparknet.layers.convolution import Convolution
from sparknet.layers.window3d import as_convolution
from sparknet.proto import caffe_pb2


class Convolution3D(Convolution):
    """convolution3d_layer.cpp of C3D.  kernel_size, stride and pad are for height and width;
    kernel_depth, temporal_stride and temporal_pad for time, the axis before them.

    The first version of C3D has the options in ``convolution_param``.
    """

    type = "Convolution3D"
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
