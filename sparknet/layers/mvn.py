"""MVN: zero mean and, if asked, unit variance for each image or channel."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape
from sparknet.layers.legacy_shape import legacy_shape


class MVN(Layer):
    """Caffe: mvn_layer.cpp.  The output always has 4 axes."""

    type = "MVN"
    stock = True
    field = "mvn_param"
    in_place = True
    copied = ("across_channels", "normalize_variance", "eps")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        top = legacy_shape(self, bottoms[0], "the input")
        return Plan((top,))
