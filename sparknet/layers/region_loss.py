"""RegionLoss: YOLOv2's loss."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Plan, Shape, exactly
from sparknet.layers.loss import Loss
from sparknet.layers.yolo_boxes import check_biases, check_map, check_truths


class RegionLoss(Loss):
    """region_loss_layer.cpp of caffe-yolov2; labels are rows of class, centre, width and height,
    or rows as AnnotatedData has them (1 x 1 x N x 8, Intel's fork).

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
        options = self.options
        check_map(self, bottoms[0], options.num, options.num_class)
        check_truths(self, bottoms)
        check_biases(self, options.biases, options.num)
        if options.coords != 4 or options.softmax_tree or options.class_map:
            self.fail("takes coords 4, without softmax_tree and class_map")
        names = ("num_class", "num", "bias_match", "object_scale", "noobject_scale")
        values = {
            **{name: getattr(options, name) for name in names},
            "class_scale": options.class_scale,
            "coord_scale": options.coord_scale,
            "thresh": options.thresh,
            "biases": tuple(options.biases),
        }
        return Plan(((),), values=values)
