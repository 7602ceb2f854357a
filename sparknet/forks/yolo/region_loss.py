"""RegionLoss: YOLOv2's loss."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.yolo.yolo_boxes import check_biases, check_map, check_truths, is_annotated
from sparknet.layers.layer import Plan, Shape, count, exactly
from sparknet.layers.loss import Loss


class RegionLoss(Loss):
    """region_loss_layer.cpp of three forks, whose options are equal.

    Every box learns that it holds no object, unless it overlaps a true box by more than thresh;
    the best anchor in the cell of a true box learns its place, that it holds an object, and its
    class.  The loss is the sum of the squares of what is learned, as in the forks, and is no
    integral of the gradient.  Labels are rows of class, centre, width and height, or as
    AnnotatedData has them.  Their shape tells the forks apart, or else ``fork`` or a dialect:

    CAFFE_YOLOV2 (``dialect="caffe-yolov2"``), N x 150 labels: overlaps are of the parts of boxes
    inside the image, and in the first 12,800 images all boxes learn to be their anchors, too.
    MOBILENET_YOLO (``"mobilenet-yolo"``), N x 1 x 300 x 5: with ``rescore`` a box learns its
    overlap in place of 1, without it small boxes count more; the loss is divided by N.
    INTEL (``"intel"``), 1 x 1 x rows x 8: differences of size are at most 1, and sure boxes learn
    less that they hold an object.

    softmax_tree and class_map (YOLO9000) are not supported.
    Values: those of region_loss_param, fork in lower case.
    """

    type = "RegionLoss"
    field = "region_loss_param"
    bottoms = exactly(2)
    copied = (
        "class_scale",
        "coord_scale",
        "thresh",
        "biases",
        "num_class",
        "num",
        "bias_match",
        "object_scale",
        "noobject_scale",
        "rescore",
    )

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        check_map(self, bottoms[0], options.num, options.num_class)
        check_truths(self, bottoms)
        check_biases(self, options.biases, options.num)
        if options.coords != 4 or options.softmax_tree or options.class_map:
            self.fail("takes coords 4, without softmax_tree and class_map")
        values = {
            "fork": self._fork(bottoms[1]),
        }
        return Plan(((),), values=values)

    def _fork(self, labels: Shape) -> str:
        if self.options.HasField("fork"):
            return self.choice("fork")
        if is_annotated(labels):
            return "intel"
        forks = {30: "caffe_yolov2", 300: "mobilenet_yolo"}
        boxes = count(labels[1:]) // 5
        if boxes not in forks:
            self.fail(
                f"forks have different losses of this name, and labels of {boxes} true boxes an "
                "image are none of theirs (30: caffe-yolov2, 300: MobileNet-YOLO): say "
                'dialect="caffe-yolov2", "mobilenet-yolo" or "intel", or fork in '
                "region_loss_param"
            )
        return forks[boxes]
