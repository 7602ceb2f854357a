"""YoloDetectionOutput: YOLOv2's boxes."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.yolo.yolo_boxes import check_biases, check_map
from sparknet.layers.layer import Layer, Plan, Shape, between


class YoloDetectionOutput(Layer):
    """yolo_detection_output_layer.cpp of MobileNet-YOLO: softmax over classes, the best counts.

    The top has rows of image, label (from 1), score, and corners in shares of the image.  The
    number of boxes is known only in the forward pass.  Values: num_classes, num_box, biases
    (anchors in cells), confidence_threshold, nms_threshold.
    """

    type = "YoloDetectionOutput"
    field = "yolo_detection_output_param"
    bottoms = between(1, 2)
    gradient = False
    reshapes = True
    numbered = True
    copied = ("num_classes", "num_box", "biases", "confidence_threshold", "nms_threshold")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        for shape in bottoms:
            check_map(self, shape, options.num_box, options.num_classes)
        check_biases(self, options.biases, options.num_box)
        if options.coords != 4:
            self.fail(f"coords must be 4; they are {options.coords}")
        return Plan(((1, 1, 1, 7),))
