"""DetectionAccuracy: how well the proposals of MS-CNN fit."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.cascade_rcnn.field_maps import field_values
from sparknet.layers.layer import Layer, Plan, Shape, between, exactly


class DetectionAccuracy(Layer):
    """detection_accuracy_layer.cpp of MS-CNN; bottoms as DetectionLoss has them.

    Top 0 has the share of places with the right class among the top_k best, of all and of those
    that hold an object; top 1 the mean overlap of the boxes with the true ones.  A share of nothing
    is -1.  Values: those of `field_values`, top_k.
    """

    type = "DetectionAccuracy"
    field = "detection_accuracy_param"
    fields = ("loss_param", "bbox_reg_param")
    bottoms = exactly(2)
    tops = between(1, 2)
    gradient = False
    judges = True
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        values = field_values(self, bottoms)
        top_k = self.options.top_k
        if not 1 <= top_k <= values["classes"]:
            self.fail(f"top_k must be 1 to {values['classes']}; it is {top_k}")
        tops = ((1, 1, 1, 2), (1, 1, 1, 1))[: len(self.parameter.top)]
        return Plan(tops, values={**values, "top_k": top_k})
