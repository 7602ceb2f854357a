"""Yolov3DetectionOutput: YOLOv3's boxes of several maps."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.yolo.yolo_boxes import check_biases, check_map
from sparknet.layers.layer import Layer, Plan, Shape, at_least, shape_text


class Yolov3DetectionOutput(Layer):
    """yolov3_detection_output_layer.cpp of MobileNet-YOLO: every class has a score of its own.

    Map i takes the anchors that its part of ``mask`` names; anchors_scale is its pixels to a cell.
    The top has rows of image, label (from 1), score, and corners in shares of the image.  The
    number of boxes is known only in the forward pass.  Values: num_classes, num_box, biases
    (anchors in pixels), mask, anchors_scale, confidence_threshold, nms_threshold.
    """

    type = "Yolov3DetectionOutput"
    field = "yolov3_detection_output_param"
    bottoms = at_least(1)
    gradient = False
    reshapes = True
    numbered = True
    copied = (
        "num_classes",
        "num_box",
        "biases",
        "mask",
        "anchors_scale",
        "confidence_threshold",
        "nms_threshold",
    )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        maps = len(bottoms)
        if options.gaussian_box:
            self.fail("gaussian_box is not supported")
        if options.mask_group_num != maps or len(options.anchors_scale) < maps:
            self.fail(
                f"{maps} maps need mask_group_num {maps} and as many anchors_scale; they are "
                f"{options.mask_group_num} and {len(options.anchors_scale)}"
            )
        if len(options.mask) < maps * options.num_box:
            self.fail(f"needs {maps * options.num_box} mask entries; there are {len(options.mask)}")
        for shape in bottoms:
            check_map(self, shape, options.num_box, options.num_classes)
            if shape[0] != bottoms[0][0]:
                self.fail(
                    "the maps must be of one number of images; "
                    f"they are {', '.join(map(shape_text, bottoms))}"
                )
        check_biases(self, options.biases, max(options.mask) + 1)
        if min(options.anchors_scale) < 1:
            self.fail("anchors_scale must be positive")
        return Plan(((1, 1, 1, 7),))
