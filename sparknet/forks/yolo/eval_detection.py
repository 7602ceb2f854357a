"""EvalDetection: YOLOv2's boxes against the true ones."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.yolo.yolo_boxes import check_biases, check_map, check_truths
from sparknet.layers.layer import Layer, Plan, Shape, between


class EvalDetection(Layer):
    """eval_detection_layer.cpp of caffe-yolov2; labels are rows of class, centre, width, height;
    or, where they are 1 x 1 x N x 8, rows as AnnotatedData has them (Intel's fork, which also names
    the image as a third bottom and does not look at it).

    The top has, for each image, the number of true boxes of each class, and then four values for
    each box that survives suppression with a score of 0.005 or more: class, score, right, wrong.
    Overlaps are of the parts of boxes inside the image.  As in the forks there is no box at all
    where nms is below 0, which it is unless given.
    Values: num_class, num_object, threshold, score_type, nms, biases.
    """

    type = "EvalDetection"
    field = "eval_detection_param"
    bottoms = between(2, 3)
    gradient = False
    judges = True
    copied = ("num_class", "num_object", "threshold", "score_type", "nms", "biases")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        check_map(self, bottoms[0], options.num_object, options.num_class)
        check_biases(self, options.biases, options.num_object)
        check_truths(self, bottoms)
        num, _, high, wide = bottoms[0]
        return Plan(((num, options.num_class + high * wide * options.num_object * 4),))
