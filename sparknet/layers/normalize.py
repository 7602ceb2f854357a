"""Normalize: divide by the Euclidean norm, then scale by learned factors."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.fillers import constant
from sparknet.layers.layer import Layer, Plan, Shape, shape_text
from sparknet.layers.learnable import learnable
from sparknet.layers.legacy_shape import legacy_shape


class Normalize(Layer):
    """normalize_layer.cpp of SSD.  One factor if ``channel_shared``, else one a channel.

    ``learned_scale: false`` is happynear's and TSN's: no factor, and nothing is learned.  A layer
    that says nothing at all is refused in TRAIN, for each may be meant, and is SSD's in TEST.
    """

    type = "Normalize"
    field = "norm_param"
    copied = ("across_spatial", "channel_shared", "eps")

    def ambiguous(self, bottoms: Sequence[Shape]) -> str:
        if self.parameter.HasField("norm_param"):
            return ""
        return (
            "SSD's divides by the norm of the whole image and learns a factor (norm_param { "
            "across_spatial: true }), TSN's learns none (dialect=\"tsn\"), and happynear's divides "
            'at each place and learns none (dialect="happynear"): SSD\'s is taken'
        )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        bottom = bottoms[0]
        options = self.options
        if len(bottom) < 2:
            self.fail(f"takes at least 2 axes (num, channels …); the input is {shape_text(bottom)}")
        legacy_shape(self, bottom, "the input")
        if not options.learned_scale and options.HasField("scale_filler"):
            self.fail("learned_scale: false has no factor, which scale_filler would fill")
        filler = options.scale_filler if options.HasField("scale_filler") else constant(1)
        shape = () if options.channel_shared else (bottom[1],)
        params = (learnable(self, shape, filler),) if options.learned_scale else ()
        return Plan((bottom,), params)
