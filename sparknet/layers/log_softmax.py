"""LogSoftmax: the logarithms of the probabilities along one axis."""

from __future__ import annotations

from sparknet.layers.softmax import Softmax


class LogSoftmax(Softmax):
    """y = x - max(x) - log(sum(exp(x - max(x)))) along the axis, of which Caffe's Softmax and Log
    make -inf where x is more than 87 below the largest value."""

    type = "LogSoftmax"
    stock = False
    squashes = None
