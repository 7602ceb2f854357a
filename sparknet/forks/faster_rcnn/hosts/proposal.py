"""Proposal: boxes from the scores of anchors (Faster R-CNN)."""

from __future__ import annotations

from collections.abc import Sequence

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import Host
from sparknet.errors import LayerError
from sparknet.forks.faster_rcnn.rpn.boxes import anchors, propose


class ProposalHost(Host):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
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
        rows = max(len(boxes), 1)
        for top, shape in zip(tops, ((rows, 5), (rows, 1, 1, 1)), strict=False):
            if tuple(top.shape) != shape:
                top.reshape(*shape)
            top.data[...] = 0
        tops[0].data[: len(boxes), 1:] = boxes
        if len(tops) > 1:
            tops[1].data[: len(boxes), 0, 0, 0] = scores
