"""DetectionEvaluate: which detections are right, for average precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparknet.errors import shown
from sparknet.forks.ssd.average_precision import mean_average_precision
from sparknet.layers.layer import Layer, Plan, Shape, between, shape_text
from sparknet.layers.legacy_shape import legacy_shape
from sparknet.proto.untrusted import check_trusted


class DetectionEvaluate(Layer):
    """detection_evaluate_layer.cpp of SSD; bottoms: detections, and the rows of true boxes.

    The top has a row (-1, label, number of true boxes, -1, -1) for each class, and a row
    (image, label, score, right, wrong) for each detection; ``Net.test`` and the solver make
    mean average precision of them.  The number of detections is known only in the forward pass.
    With a name_size_file boxes are compared in pixels of the pictures that it lists in their order.

    Cascade R-CNN's layer has a third bottom, the height and width of each picture (N x 2); its
    detections are rows of image, corners, label and score, its true boxes rows of image, corners,
    label, ignored and difficult, both in pixels, and the top is M x 5 x 1 x 1.
    Values: num_classes, background_label_id, overlap_threshold, evaluate_difficult_gt, sizes (the
    name_size_file, or None), pixels (Cascade R-CNN's).
    """

    type = "DetectionEvaluate"
    field = "detection_evaluate_param"
    bottoms = between(2, 3)
    gradient = False
    reshapes = True
    judges = True
    evaluates = True

    summary = staticmethod(mean_average_precision)
    copied = ("num_classes", "background_label_id", "overlap_threshold", "evaluate_difficult_gt")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        if options.num_classes < 1:
            self.fail("needs num_classes")
        if not options.overlap_threshold > 0:
            self.fail(f"overlap_threshold must be positive; it is {options.overlap_threshold:g}")
        self._check_how()
        values = {"sizes": options.name_size_file or None, "pixels": len(bottoms) > 2}
        counted = options.background_label_id < options.num_classes
        rows = options.num_classes - int(counted)
        if len(bottoms) > 2:
            self._check_pixels(bottoms)
            return Plan(((rows + bottoms[0][0], 5, 1, 1),), values=values)
        for name, shape, width in zip(("detections", "true boxes"), bottoms, (7, 8), strict=True):
            if len(shape) != 4 or shape[:2] != (1, 1) or shape[3] != width:
                self.fail(f"the {name} must be 1 x 1 x N x {width}; they are {shape_text(shape)}")
        return Plan(((1, 1, rows + bottoms[0][2], 5),), values=values)

    def _check_pixels(self, bottoms: Sequence[Shape]) -> None:
        names = ("detections", "true boxes", "sizes")
        for name, shape, width in zip(names, bottoms, (7, 8, 2), strict=True):
            if not shape or legacy_shape(self, shape, name)[1:] != (width, 1, 1):
                self.fail(f"the {name} must be N x {width}; they are {shape_text(shape)}")

    def _check_how(self) -> None:
        options = self.options
        how = options.resize_param
        if options.HasField("resize_param") and (how.height < 1 or how.width < 1):
            self.fail(f"resize_param needs height and width; they are {how.height}, {how.width}")
        if options.name_size_file:
            path = options.name_size_file
            check_trusted(self.parameter, f"to read the sizes '{shown(path)}'")
            if not Path(path).is_file():
                self.fail(f"the name_size_file '{shown(path)}' is no file")
