"""Convolution3D: Convolution over time, height and width, as C3D writes it."""

from __future__ import annotations

from sparknet.forks.video.window3d import Window3D
from sparknet.layers.convolution import Convolution


class Convolution3D(Window3D, Convolution):
    """convolution3d_layer.cpp of C3D.  kernel_size, stride and pad are for height and width;
    kernel_depth, temporal_stride and temporal_pad for time, the axis before them.

    The first version of C3D has the options in ``convolution_param``.
    """

    type = "Convolution3D"
