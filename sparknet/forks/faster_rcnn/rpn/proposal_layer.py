"""The Python layer ``rpn.proposal_layer.ProposalLayer``: boxes from scores of anchors."""

from __future__ import annotations

from typing import Any

from sparknet.forks.faster_rcnn.rpn.boxes import RATIOS, SCALES, anchors, propose
from sparknet.forks.faster_rcnn.rpn.settings import settings
from sparknet.layers.layer import TRAIN
from sparknet.layers.user_layer import UserLayer

DEFAULTS = {"feat_stride": 16, "scales": SCALES, "ratios": RATIOS, "min_size": 16, "nms": 0.7}
TOPS = {TRAIN: (12000, 2000)}
OTHERWISE = (6000, 300)
"""How many boxes compete, and how many stay."""


class ProposalLayer(UserLayer):
    """Bottoms: scores (1 x 2A x H x W, the second half objects), deltas, image size and scale.

    Tops: rows (0, x1, y1, x2, y2), and the boxes' scores.
    """

    def setup(self, bottom: Any, top: Any) -> None:
        self.values = settings(self.param_str, DEFAULTS)
        before, after = TOPS.get(int(self.phase), OTHERWISE)
        self.before = int(self.values.get("pre_nms_topn", before))
        self.after = int(self.values.get("post_nms_topn", after))
        self.base = anchors(16, self.values["ratios"], self.values["scales"])
        self._shape(top, 1)

    def reshape(self, bottom: Any, top: Any) -> None:
        """The number of boxes is known only in the forward pass."""

    def forward(self, bottom: Any, top: Any) -> None:
        scores = bottom[0].data
        if scores.shape[0] != 1:
            raise ValueError(f"proposals take one image at a time, not {scores.shape[0]}")
        boxes, found = propose(
            scores[0, len(self.base) :],
            bottom[1].data[0],
            bottom[2].data.ravel()[:3],
            base=self.base,
            stride=int(self.values["feat_stride"]),
            least=self.values["min_size"],
            before=self.before,
            after=self.after,
            threshold=self.values["nms"],
        )
        self._shape(top, max(len(boxes), 1))
        top[0].data[...] = 0
        top[0].data[: len(boxes), 1:] = boxes
        if len(top) > 1:
            top[1].data[...] = 0
            top[1].data[: len(boxes)].reshape(len(boxes))[...] = found

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Boxes have no gradient."""

    @staticmethod
    def _shape(top: Any, rows: int) -> None:
        top[0].reshape(rows, 5)
        if len(top) > 1:
            top[1].reshape(rows, 1, 1, 1)
