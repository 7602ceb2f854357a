"""DetectionGroupAccuracy: how well the proposals of Cascade R-CNN's nets fit."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.anchor_groups import group_values
from sparknet.layers.layer import Layer, Plan, Shape, between, exactly


class DetectionGroupAccuracy(Layer):
    """detection_group_accuracy_layer.cpp; bottoms as DetectionGroupLoss has them.

    Top 0 has the share of places with the right class, of all and of those that hold an object;
    top 1 the mean overlap of the boxes with the true ones.  A share of nothing is -1.
    Values: those of `group_values`.
    """

    type = "DetectionGroupAccuracy"
    field = "detection_group_accuracy_param"
    fields = ("loss_param", "bbox_reg_param")
    bottoms = exactly(3)
    tops = between(1, 2)
    gradient = False
    judges = True
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        tops = ((1, 1, 1, 2), (1, 1, 1, 1))[: len(self.parameter.top)]
        return Plan(tops, values=group_values(self, bottoms))
