"""Normalize: divide by the Euclidean norm, then scale by learned factors."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant
from sparknet.layers.layer import Layer, Plan, Shape, shape_text
from sparknet.layers.learnable import learnable
from sparknet.layers.legacy_shape import legacy_shape


class Normalize(Layer):
    """normalize_layer.cpp of SSD.  One factor if ``channel_shared``, else one a channel."""

    type = "Normalize"
    field = "norm_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        options = self.options
        if len(bottom) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); the input is {shape_text(bottom)}")
        legacy_shape(self, bottom, "the input")
        filler = options.scale_filler if options.HasField("scale_filler") else constant(1)
        shape = () if options.channel_shared else (bottom[1],)
        values = {
            "across_spatial": options.across_spatial,
            "channel_shared": options.channel_shared,
            "eps": options.eps,
        }
        return Plan((bottom,), (learnable(self, shape, filler),), values)
