"""SpatialDropout: whole channels dropped at random while training."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.dropout import Dropout
from sparknet.layers.layer import Plan, Shape, shape_text


class SpatialDropout(Dropout):
    """Dropout of channels, not of values: each channel of an image stays or goes as a whole.

    spatial_dropout_layer.cpp of ENet's fork; the options are Dropout's.
    """

    type = "SpatialDropout"
    stock = False

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        if len(bottoms[0]) < 2:
            self.fail(f"takes at least 2 axes; the input is {shape_text(bottoms[0])}")
        return super().infer(bottoms)
