"""Proposal: Faster R-CNN's region proposals as a layer type."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.forks.faster_rcnn.rpn.boxes import RATIOS, SCALES
from sparknet.layers.layer import Layer, Plan, Shape, between, count, exactly, shape_text


class Proposal(Layer):
    """proposal_layer.cpp of forks; bottoms: scores, deltas, and image height, width and scale.

    The scores are 1 x 2A x H x W, of which the second half counts, for A anchors of each ratio
    and scale; top 0 has rows (0, x1, y1, x2, y2), top 1 their scores.  The number of boxes is
    known only in the forward pass.  Values: those of proposal_param.
    """

    type = "Proposal"
    field = "proposal_param"
    bottoms = exactly(3)
    tops = between(1, 2)
    gradient = False
    reshapes = True
    numbered = True
    copied = ("feat_stride", "base_size", "min_size", "pre_nms_topn", "post_nms_topn", "nms_thresh")

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        ratios, scales = tuple(options.ratio) or RATIOS, tuple(options.scale) or SCALES
        if min(*ratios, *scales) <= 0 or options.feat_stride < 1 or options.base_size < 1:
            self.fail("ratio, scale, feat_stride and base_size must be positive")
        many = len(ratios) * len(scales)
        scores, deltas = bottoms[:2]
        if len(scores) != 4 or scores[:2] != (1, 2 * many) or not count(scores[2:]):
            self.fail(
                f"{many} anchors need scores of 1 x {2 * many} x H x W, not {shape_text(scores)}"
            )
        if deltas != (1, 4 * many, *scores[2:]):
            self.fail(
                f"{many} anchors need deltas of {shape_text((1, 4 * many, *scores[2:]))}; "
                f"they are {shape_text(deltas)}"
            )
        values = {"ratios": ratios, "scales": scales}
        return Plan(((1, 5), (1, 1, 1, 1))[: len(self.parameter.top)], values=values)
