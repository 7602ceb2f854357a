"""DepthwiseConvolution: the MobileNet forks' name for a convolution with one group a channel."""

from __future__ import annotations

from sparknet.layers.convolution import Convolution


class DepthwiseConvolution(Convolution):
    """depthwise_conv_layer.cpp of yonghenglh6: on the CPU it is Convolution, ``group`` included."""

    type = "DepthwiseConvolution"
    stock = False
