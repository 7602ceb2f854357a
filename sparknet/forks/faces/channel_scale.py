"""ChannelScale: each place's channels times one number."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, count, exactly, shape_text


class ChannelScale(Layer):
    """channel_scale_layer.cpp of happynear's fork; bottoms: x (N x C …) and a scale for each place
    (as many values as x without its channels).

    do_forward, do_backward_feature and do_backward_scale switch the product off in one direction.
    global_scale is not supported.  Values: forward, feature, scale.
    """

    type = "ChannelScale"
    field = "channel_scale_param"
    bottoms = exactly(2)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.global_scale:
            self.fail("global_scale is not supported: leave it out")
        x, scale = bottoms
        places = (*x[:1], *x[2:])
        if len(x) < 2 or not scale or scale[0] != x[0] or count(scale) != count(places):
            self.fail(
                f"x {shape_text(x)} needs {shape_text(places)} scales; they are {shape_text(scale)}"
            )
        values = {
            "forward": options.do_forward,
            "feature": options.do_backward_feature,
            "scale": options.do_backward_scale,
        }
        return Plan((x,), values=values)
