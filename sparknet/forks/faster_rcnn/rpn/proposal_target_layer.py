"""The Python layer ``rpn.proposal_target_layer.ProposalTargetLayer``: boxes to train on."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.forks.faster_rcnn.rpn.boxes import encoded, overlaps
from sparknet.forks.faster_rcnn.rpn.settings import settings
from sparknet.layers.user_layer import UserLayer

DEFAULTS = {
    "num_classes": 21,
    "batch_size": 128,
    "fg_fraction": 0.25,
    "fg_thresh": 0.5,
    "bg_thresh_hi": 0.5,
    "bg_thresh_lo": 0.0,
    "means": (0.0, 0.0, 0.0, 0.0),
    "stds": (0.1, 0.1, 0.2, 0.2),
    "seed": 0,
}


class ProposalTargetLayer(UserLayer):
    """Bottoms: proposals (0, x1, y1, x2, y2) and true boxes (x1, y1, x2, y2, class).

    Tops: the chosen boxes, their classes, targets of their deltas in the columns of their class,
    and the weights inside and outside a smooth L1 loss.  ``num_classes`` 2 has one set of columns
    for objects of any class, and ``batch_size`` -1 takes all proposals (R-FCN).
    """

    def setup(self, bottom: Any, top: Any) -> None:
        self.values = settings(self.param_str, DEFAULTS)
        self.classes = int(self.values["num_classes"])
        self.columns = 4 * self.classes
        self.random = np.random.default_rng(int(self.values["seed"]))
        self._shape(top, 1)

    def reshape(self, bottom: Any, top: Any) -> None:
        """The number of boxes is known only in the forward pass."""

    def _shape(self, top: Any, rows: int) -> None:
        for place, one in enumerate(top):
            width = (5, 1, self.columns, self.columns, self.columns)[place]
            one.reshape(rows, width, 1, 1) if place else one.reshape(rows, width)

    def forward(self, bottom: Any, top: Any) -> None:
        truth = np.array(bottom[1].data, np.float64).reshape(-1, 5)
        proposed = np.array(bottom[0].data, np.float64).reshape(-1, 5)
        # True boxes are proposals, too.
        own = np.concatenate([np.zeros((len(truth), 1)), truth[:, :4]], 1)
        boxes = np.concatenate([proposed, own])
        shared = overlaps(boxes[:, 1:], truth) if len(truth) else np.zeros((len(boxes), 1))
        best, most = shared.argmax(1), shared.max(1)
        chosen, real = self._chosen(most)
        labels = truth[best[chosen], 4] if len(truth) else np.zeros(len(chosen))
        labels[real:] = 0
        rows = max(len(chosen), 1)
        self._shape(top, rows)
        for one in top:
            one.data[...] = 0
        top[0].data[: len(chosen)] = boxes[chosen]
        top[1].data.reshape(rows)[: len(chosen)] = labels
        if real:
            deltas = encoded(boxes[chosen[:real], 1:], truth[best[chosen[:real]], :4])
            deltas = (deltas - self.values["means"]) / self.values["stds"]
            self._fill(top, labels[:real], deltas)

    def _fill(self, top: Any, labels: Any, deltas: Any) -> None:
        for row, (label, delta) in enumerate(zip(labels, deltas, strict=True)):
            if label >= self.classes > 2:
                raise ValueError(f"a true box is of class {label:g}: there are {self.classes}")
            column = 4 * min(int(label), self.classes - 1)
            part = slice(column, column + 4)
            top[2].data[row, part] = delta.reshape(4, 1, 1)
            for one in list(top)[3:]:
                one.data[row, part] = 1

    def _chosen(self, most: Any) -> tuple[Any, int]:
        """Places of objects, then of the background, and how many of the first there are."""
        values = self.values
        objects = np.flatnonzero(most >= values["fg_thresh"])
        others = np.flatnonzero((most < values["bg_thresh_hi"]) & (most >= values["bg_thresh_lo"]))
        batch = int(values["batch_size"])
        if batch > 0:
            objects = self._some(objects, round(values["fg_fraction"] * batch))
            others = self._some(others, batch - len(objects))
        return np.concatenate([objects, others]), len(objects)

    def _some(self, places: Any, most: int) -> Any:
        return places if len(places) <= most else self.random.choice(places, most, replace=False)

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Targets have no gradient."""
