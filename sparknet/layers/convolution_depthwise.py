"""ConvolutionDepthwise: ShuffleNet's name for a convolution with one group a channel."""

from __future__ import annotations

from sparknet.layers.convolution import Convolution


class ConvolutionDepthwise(Convolution):
    """conv_dw_layer.cpp of farmingyard: Convolution, in which every channel is a group of its own
    whatever ``group`` says.
    """

    type = "ConvolutionDepthwise"
    stock = False
    by_channel = True
