"""Proposal: boxes from the scores of anchors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparknet.errors import LayerError
from sparknet.layers.anchors import RATIOS, SCALES, anchors, propose
from sparknet.layers.host import Blobs, Host, put_rows
from sparknet.layers.layer import (
    EVERY,
    BoxRows,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    shape_text,
)


class ProposalHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        base = anchors(values["base_size"], values["ratios"], values["scales"])
        if bottoms[2].count < 3:
            raise LayerError(self.node.name, "Proposal: the image has height, width and scale")
        boxes, scores = propose(
            bottoms[0].data[0, len(base) :],
            bottoms[1].data[0],
            bottoms[2].data.ravel()[:3],
            base=base,
            stride=values["feat_stride"],
            least=values["min_size"],
            before=values["pre_nms_topn"],
            after=values["post_nms_topn"],
            threshold=values["nms_thresh"],
        )
        rows = np.zeros((max(len(boxes), 1), 6))
        rows[: len(boxes), 1:] = np.concatenate([boxes, scores[:, None]], 1)
        for top, part in zip(tops, (rows[:, :5], rows[:, 5]), strict=False):
            put_rows(top, part)


@layer("Proposal")
class Proposal(BoxRows):
    """proposal_layer.cpp of forks; bottoms: scores, deltas, and image height, width and scale.

    The scores are 1 x 2A x H x W, of which the second half counts, for A anchors of each ratio
    and scale; top 0 has rows (0, x1, y1, x2, y2), top 1 their scores.  The number of boxes is
    known only in the forward pass.  Values: those of proposal_param.
    """

    host = ProposalHost
    field = "proposal_param"
    bottoms = exactly(3)
    tops = between(1, 2)
    plain_options = EVERY

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
