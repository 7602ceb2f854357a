"""ShuffleChannel: channels redistributed among groups."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, shape_text
from sparknet.layers.legacy_shape import legacy_shape


class ShuffleChannel(Layer):
    """shuffle_channel_layer.cpp of ShuffleNet.  The output always has 4 axes."""

    type = "ShuffleChannel"
    field = "shuffle_channel_param"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        group = self.options.group
        if group < 1:
            self.fail(f"group must be positive; it is {group}")
        if len(bottoms[0]) < 2:
            self.fail(f"needs a channel axis; the input is {shape_text(bottoms[0])}")
        top = legacy_shape(self, bottoms[0], "the input")
        if top[1] % group:
            self.fail(f"the {top[1]} channels do not divide into {group} groups")
        return Plan((top,), values={"group": group})
