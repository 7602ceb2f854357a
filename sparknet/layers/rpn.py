"""What prototxts of Faster R-CNN name as Python layers of a module `rpn`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.errors import LayerError
from sparknet.layers.anchors import RATIOS, SCALES, anchors, encode, grid, overlaps, propose
from sparknet.layers.host import Blobs, Host, put_rows
from sparknet.layers.layer import (
    EVERY,
    TRAIN,
    BoxRows,
    Plan,
    Shape,
    between,
    count,
    exactly,
    layer,
    shape_text,
)
from sparknet.layers.user_layer import UserLayer, supplies


def settings(param_str: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults, replaced by the text's entries, one a line: ``'feat_stride': 16``."""
    lines = [line.strip().rstrip(",") for line in param_str.splitlines() if line.strip()]
    text = ", ".join(lines).replace("!!python/tuple", "").strip("{}")
    try:
        entries = ast.literal_eval("{" + text + "}")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        entries = _plain(lines)
    return {**defaults, **entries}


def _plain(lines: list[str]) -> dict[str, Any]:
    """Keys without quotes, as YAML allows."""
    entries = {}
    for line in lines:
        key, separator, value = line.strip("{}").partition(":")
        try:
            entries[key.strip().strip("'\"")] = ast.literal_eval(value.strip())
        except (SyntaxError, ValueError) as error:
            raise ValueError(f"param_str cannot be read: {line[:80]!r}") from error
        if not separator:
            raise ValueError(f"param_str cannot be read: {line[:80]!r}")
    return entries


PROPOSAL_DEFAULTS = {
    "feat_stride": 16,
    "scales": SCALES,
    "ratios": RATIOS,
    "min_size": 16,
    "nms": 0.7,
}
TOPS = {TRAIN: (12000, 2000)}
OTHERWISE = (6000, 300)
"""How many boxes compete, and how many stay."""


@supplies("rpn.proposal_layer")
class ProposalLayer(UserLayer):
    """Bottoms: scores (1 x 2A x H x W, the second half objects), deltas, image size and scale.

    Tops: rows (0, x1, y1, x2, y2), and the boxes' scores."""

    def setup(self, bottom: Any, top: Any) -> None:
        self.values = settings(self.param_str, PROPOSAL_DEFAULTS)
        before, after = TOPS.get(int(self.phase), OTHERWISE)
        self.before = int(self.values.get("pre_nms_topn", before))
        self.after = int(self.values.get("post_nms_topn", after))
        self.base = anchors(16, self.values["ratios"], self.values["scales"])
        self._shape(top, 1)

    def reshape(self, bottom: Any, top: Any) -> None:
        """Give the tops one row; the number of boxes is known only in the forward pass."""

    def forward(self, bottom: Any, top: Any) -> None:
        scores = bottom[0].data
        if scores.shape[0] != 1:
            raise ValueError(f"proposals take one image at a time, not {scores.shape[0]}")
        boxes, likelihoods = propose(
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
            top[1].data[: len(boxes)].reshape(len(boxes))[...] = likelihoods

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Boxes have no gradient."""

    @staticmethod
    def _shape(top: Any, rows: int) -> None:
        top[0].reshape(rows, 5)
        if len(top) > 1:
            top[1].reshape(rows, 1, 1, 1)


ANCHOR_DEFAULTS = {
    "feat_stride": 16,
    "scales": SCALES,
    "ratios": RATIOS,
    "allowed_border": 0,
    "batch_size": 256,
    "fg_fraction": 0.5,
    "positive_overlap": 0.7,
    "negative_overlap": 0.3,
    "seed": 0,
}


@supplies("rpn.anchor_target_layer")
class AnchorTargetLayer(UserLayer):
    """Bottoms: scores of the anchors, true boxes (x1, y1, x2, y2, class), image size, image.

    Tops: a label of each anchor (1 object, 0 none, -1 neither), targets of its deltas, and the
    weights inside and outside a smooth L1 loss."""

    def setup(self, bottom: Any, top: Any) -> None:
        self.values = settings(self.param_str, ANCHOR_DEFAULTS)
        self.base = anchors(16, self.values["ratios"], self.values["scales"])
        self.random = np.random.default_rng(int(self.values["seed"]))
        self.reshape(bottom, top)

    def reshape(self, bottom: Any, top: Any) -> None:
        high, wide = bottom[0].shape[-2:]
        many = len(self.base)
        top[0].reshape(1, 1, many * high, wide)
        for one in list(top)[1:]:
            one.reshape(1, 4 * many, high, wide)

    def forward(self, bottom: Any, top: Any) -> None:
        high, wide = bottom[0].shape[-2:]
        truth = np.array(bottom[1].data).reshape(-1, 5)[:, :4]
        size = bottom[2].data.ravel()
        places = grid(high, wide, int(self.values["feat_stride"]), self.base)
        border = self.values["allowed_border"]
        inside = np.flatnonzero(
            (places[:, :2] >= -border).all(1)
            & (places[:, 2] < size[1] + border)
            & (places[:, 3] < size[0] + border)
        )
        labels = np.full(len(places), -1.0)
        targets, inner, outer = (np.zeros((len(places), 4)) for _ in range(3))
        if len(inside) and len(truth):
            labels[inside], best = self._labels(places[inside], truth)
            targets[inside] = encode(places[inside], truth[best])
            inner[labels == 1] = 1
            outer[labels >= 0] = 1 / max(int(np.count_nonzero(labels >= 0)), 1)
        by_place = (high, wide, len(self.base), -1)
        top[0].data[...] = labels.reshape(high, wide, -1).transpose(2, 0, 1).reshape(top[0].shape)
        for one, values in zip(list(top)[1:], (targets, inner, outer), strict=False):
            one.data[...] = values.reshape(by_place).transpose(2, 3, 0, 1).reshape(one.shape)

    def _labels(self, places: Any, truth: Any) -> tuple[Any, Any]:
        """Return the labels, of which few are not -1, and the true box nearest to each anchor."""
        values = self.values
        shared = overlaps(places, truth)
        best, most = shared.argmax(1), shared.max(1)
        labels = np.full(len(places), -1.0)
        labels[most < values["negative_overlap"]] = 0
        labels[(shared == shared.max(0)).any(1)] = 1
        labels[most >= values["positive_overlap"]] = 1
        positive = int(values["fg_fraction"] * values["batch_size"])
        self._drop(labels, 1, positive)
        self._drop(labels, 0, int(values["batch_size"]) - np.count_nonzero(labels == 1))
        return labels, best

    def _drop(self, labels: Any, label: int, most: int) -> None:
        places = np.flatnonzero(labels == label)
        if len(places) > most:
            labels[self.random.choice(places, len(places) - most, replace=False)] = -1

    def backward(self, top: Any, propagate_down: Any, bottom: Any) -> None:
        """Targets have no gradient."""


TARGET_DEFAULTS = {
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


@supplies("rpn.proposal_target_layer")
class ProposalTargetLayer(UserLayer):
    """Bottoms: proposals (0, x1, y1, x2, y2) and true boxes (x1, y1, x2, y2, class).

    Tops: the chosen boxes, their classes, targets of their deltas in the columns of their class,
    and the weights inside and outside a smooth L1 loss.  ``num_classes`` 2 has one set of columns
    for objects of any class, and ``batch_size`` -1 takes all proposals (R-FCN)."""

    def setup(self, bottom: Any, top: Any) -> None:
        self.values = settings(self.param_str, TARGET_DEFAULTS)
        self.classes = int(self.values["num_classes"])
        self.columns = 4 * self.classes
        self.random = np.random.default_rng(int(self.values["seed"]))
        self._shape(top, 1)

    def reshape(self, bottom: Any, top: Any) -> None:
        """Give the tops one row; the number of boxes is known only in the forward pass."""

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
        indices, real = self._sample(most)
        labels = truth[best[indices], 4] if len(truth) else np.zeros(len(indices))
        labels[real:] = 0
        rows = max(len(indices), 1)
        self._shape(top, rows)
        for one in top:
            one.data[...] = 0
        top[0].data[: len(indices)] = boxes[indices]
        top[1].data.reshape(rows)[: len(indices)] = labels
        if real:
            deltas = encode(boxes[indices[:real], 1:], truth[best[indices[:real]], :4])
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

    def _sample(self, most: Any) -> tuple[Any, int]:
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
    known only in the forward pass."""

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
