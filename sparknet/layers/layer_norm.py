"""LayerNorm: zero mean and unit variance over the last axes; Scale follows it."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape


class LayerNorm(Layer):
    """y = (x - mean) / sqrt(variance + eps) (Ba, Kiros and Hinton, 2016).

    The axes from ``axis`` on are normalised together.  It learns nothing: factors and shifts are a
    Scale's.
    """

    type = "LayerNorm"
    field = "layer_norm_param"
    copied = ("eps",)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        axis = self.axis(self.options.axis, bottoms[0])
        return Plan((bottoms[0],), values={"axis": axis})
