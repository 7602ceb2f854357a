"""DetectionEvaluate: which detections are right, for average precision."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text


class DetectionEvaluate(Layer):
    """detection_evaluate_layer.cpp of SSD; bottoms: detections, and the rows of true boxes.

    The top has a row (-1, label, number of true boxes, -1, -1) for each class, and a row
    (image, label, score, right, wrong) for each detection; ``Net.test`` and the solver make
    mean average precision of them.  The number of detections is known only in the forward pass.
    Values: num_classes, background_label_id, overlap_threshold, evaluate_difficult_gt.
    """

    type = "DetectionEvaluate"
    field = "detection_evaluate_param"
    bottoms = exactly(2)
    gradient = False
    reshapes = True
    judges = True
    evaluates = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.num_classes < 1:
            self.fail("needs num_classes")
        if not options.overlap_threshold > 0:
            self.fail(f"overlap_threshold must be positive; it is {options.overlap_threshold:g}")
        if options.HasField("name_size_file"):
            self.fail("name_size_file is not supported: boxes are compared as shares of the image")
        for name, shape, width in zip(("detections", "true boxes"), bottoms, (7, 8), strict=True):
            if len(shape) != 4 or shape[:2] != (1, 1) or shape[3] != width:
                self.fail(f"the {name} must be 1 x 1 x N x {width}; they are {shape_text(shape)}")
        values = {
            "num_classes": options.num_classes,
            "background_label_id": options.background_label_id,
            "overlap_threshold": options.overlap_threshold,
            "evaluate_difficult_gt": options.evaluate_difficult_gt,
        }
        counted = options.background_label_id < options.num_classes
        positive = options.num_classes - int(counted)
        return Plan(((1, 1, positive + bottoms[0][2], 5),), values=values)
