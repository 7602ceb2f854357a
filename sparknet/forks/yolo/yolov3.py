"""Yolov3: YOLOv3's loss of one map."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.yolo.yolo_boxes import check_biases, check_map
from sparknet.layers.layer import Plan, Shape, count, exactly, shape_text
from sparknet.layers.loss import Loss


class Yolov3(Loss):
    """yolov3_layer.cpp of MobileNet-YOLO; labels are rows of class, centre, width and height.

    Every box learns that it holds no object, unless it overlaps a true box by more than thresh;
    of all anchors the one most like a true box, and those of this map with an overlap above
    iou_thresh, learn its place, that they hold an object, and its class (smoothed by
    label_smooth_eps).  The loss is the sum of the squares of what is learned, divided by the
    number of images.  iou_loss must be MSE, and use_focal_loss false.
    Values: those of yolov3_param.
    """

    type = "Yolov3"
    field = "yolov3_param"
    bottoms = exactly(2)
    copied = (
        "anchors_scale",
        "use_logic_gradient",
        "iou_thresh",
        "label_smooth_eps",
        "biases",
        "num_class",
        "num",
        "object_scale",
        "class_scale",
        "coord_scale",
        "thresh",
    )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        options = self.options
        check_map(self, bottoms[0], options.num, options.num_class)
        if len(options.mask) < options.num:
            self.fail(f"needs {options.num} mask entries; there are {len(options.mask)}")
        check_biases(self, options.biases, max(options.mask) + 1)
        if self.choice("iou_loss") != "mse":
            self.fail(f"iou_loss {self.choice('iou_loss').upper()} is not supported; use MSE")
        if options.use_focal_loss:
            self.fail("use_focal_loss is not supported")
        if options.anchors_scale < 1:
            self.fail(f"anchors_scale must be positive; it is {options.anchors_scale}")
        if count(bottoms[1][1:]) % 5:
            self.fail(f"a true box has 5 values; the labels are {shape_text(bottoms[1])}")
        values = {
            "mask": tuple(options.mask[: options.num]),
        }
        return Plan(((),), values=values)
