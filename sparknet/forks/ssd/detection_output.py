"""DetectionOutput: the boxes that survive (SSD)."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.ssd.boxes import check_predictions
from sparknet.layers.layer import Layer, Plan, Shape, between
from sparknet.layers.saved_output import refuse_saving


class DetectionOutput(Layer):
    """Of SSD (detection_output_layer.cpp).  A save_output_param that would write files is refused.

    With five bottoms, or where objectness_score is given, the layer is RefineDet's: bottom 3 has
    the first stage's scores of background and object, which hold for sure below objectness_score,
    and bottom 4 its locations, by which the priors are moved first.

    The number of boxes is known only in the forward pass; until then it is 1.
    Values: priors, num_classes, share_location, background_label_id, code_type ("corner",
    "center_size", "corner_size"), variance_encoded_in_target, keep_top_k (-1: all),
    confidence_threshold (None: none), nms_threshold, top_k (-1: all), eta, refines,
    objectness_score.
    """

    type = "DetectionOutput"
    field = "detection_output_param"
    fields = ("transform_param",)
    bottoms = between(3, 5)
    gradient = False
    numbered = True
    reshapes = True
    copied = (
        "background_label_id",
        "code_type",
        "variance_encoded_in_target",
        "keep_top_k",
        "objectness_score",
    )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        refuse_saving(self)
        options = self.options
        if options.num_classes < 1:
            self.fail(f"num_classes {options.num_classes} must be positive")
        nms = options.nms_param
        if not nms.nms_threshold >= 0:
            self.fail(f"nms_threshold {nms.nms_threshold:g} must not be negative")
        if not 0 < nms.eta <= 1:
            self.fail(f"eta {nms.eta:g} must be more than 0 and at most 1")
        shared, classes = options.share_location, options.num_classes
        refines = len(bottoms) > 4 or options.HasField("objectness_score")
        first_stage = len(bottoms) - 3 if refines else 0
        if first_stage and (not shared or options.background_label_id):
            self.fail("a first stage needs share_location: true and background_label_id: 0")
        least = options.confidence_threshold if options.HasField("confidence_threshold") else None
        values = {
            "priors": check_predictions(self, bottoms, classes, shared, first_stage),
            "num_classes": classes,
            "share_location": shared,
            "confidence_threshold": least,
            "nms_threshold": nms.nms_threshold,
            "top_k": nms.top_k if nms.HasField("top_k") else -1,
            "eta": nms.eta,
            "refines": refines,
        }
        return Plan(tops=((1, 1, 1, 7),), values=values)
