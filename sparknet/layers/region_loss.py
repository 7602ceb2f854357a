"""RegionLoss: YOLOv2's loss."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, count, exactly, shape_text
from sparknet.layers.loss import Loss
from sparknet.layers.yolo_boxes import check_biases, check_map


class RegionLoss(Loss):
    """region_loss_layer.cpp of caffe-yolov2; labels are rows of class, centre, width and height.

    Every box learns that it holds no object, unless it overlaps a true box by more than thresh;
    the best anchor in the cell of a true box learns its place, that it holds an object, and its
    class; and while fewer than 12,800 images have been seen all boxes learn to be their anchors.
    The loss is the sum of the squares of what is learned, as in the fork, and is no integral of
    the gradient.  softmax_tree and class_map (YOLO9000) are not supported.
    Values: those of region_loss_param.
    """

    type = "RegionLoss"
    field = "region_loss_param"
    bottoms = exactly(2)

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        self.check_batch(bottoms)
        options = self.options
        check_map(self, bottoms[0], options.num, options.num_class)
        check_biases(self, options.biases, options.num)
        if options.coords != 4 or options.softmax_tree or options.class_map:
            self.fail("takes coords 4, without softmax_tree and class_map")
        if count(bottoms[1][1:]) % 5:
            self.fail(f"a true box has 5 values; the labels are {shape_text(bottoms[1])}")
        names = ("num_class", "num", "bias_match", "object_scale", "noobject_scale")
        values = {
            **{name: getattr(options, name) for name in names},
            "class_scale": options.class_scale,
            "coord_scale": options.coord_scale,
            "thresh": options.thresh,
            "biases": tuple(options.biases),
        }
        return Plan(((),), values=values)
