"""SegAccuracy: how well each pixel's class is told."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.layers.layer import Layer, Plan, Shape, exactly, shape_text

MOST_CLASSES = 10_000


class SegAccuracy(Layer):
    """seg_accuracy_layer.cpp of DeepLab and PSPNet; bottoms: scores (N x classes x H x W) and
    labels (N x 1 x H x W).

    The top is 1 x 1 x 1 x 3: the share of right pixels, its mean over the classes that occur, and
    the mean intersection over union.  Pixels with an ignore_label do not count; `reset: false`
    counts those of all passes.  Values: ignored (labels), reset.
    """

    type = "SegAccuracy"
    labelled = True
    field = "seg_accuracy_param"
    bottoms = exactly(2)
    gradient = False
    judges = True
    copied = ("reset",)
    mixes_records = True

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        scores, labels = bottoms
        if len(scores) != 4 or not 1 <= scores[1] <= MOST_CLASSES:
            self.fail(
                f"needs scores of N x classes x H x W, at most {MOST_CLASSES} classes; "
                f"their shape is {shape_text(scores)}"
            )
        if tuple(labels) != (scores[0], 1, *scores[2:]):
            self.fail(
                f"needs a label for each pixel of {shape_text(scores)}; "
                f"their shape is {shape_text(labels)}"
            )
        values = {"ignored": tuple(self.options.ignore_label)}
        return Plan(((1, 1, 1, 3),), values=values)
