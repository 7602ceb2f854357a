"""DetectionGroupLoss: the loss of chosen anchors (Cascade R-CNN:
detection_group_loss_layer.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import DrawingHost
from sparknet.errors import LayerError
from sparknet.forks.cascade_rcnn.hosts.anchor_maps import bounded, targets
from sparknet.graph import Node

Array = np.ndarray[Any, Any]
TINY = float(np.finfo(np.float32).tiny)


class DetectionGroupLossHost(DrawingHost):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.slopes: list[Array] = []

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        scores, deltas, labels = (bottom.data.astype(np.float64) for bottom in bottoms)
        classes = labels[:, 0].astype(np.int64)
        judged, chances, errors = judge(self.node, classes, scores)
        ranks = errors if values["ranking"] == "conf_loss" else 1 - chances[:, 0]
        kept = chosen(classes, labels[:, 5], ranks, values, self.rng)
        weights = weighted(classes, kept, values)
        learns = kept & (judged != values["ignore_label"])
        boxed = kept & (classes != values["ignore_label"]) & (classes != 0)
        loss, slope = box_loss(deltas, labels, boxed, values)
        share = weights * learns / max(np.count_nonzero(learns), 1)
        wanted = np.arange(values["classes"])[None, :, None, None] == judged[:, None]
        self.slopes = [(chances - wanted) * share[:, None], slope * values["lambda"]]
        loss *= values["lambda"]
        tops[0].data[...] = [[[[(errors * share).sum() + loss, loss]]]]

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        for bottom, slope, wanted in zip(bottoms, self.slopes, propagate_down, strict=False):
            if wanted:
                bottom.diff[...] = slope * float(tops[0].diff.ravel()[0])


def judge(node: Node, classes: Array, scores: Array) -> tuple[Array, Array, Array]:
    """The classes that are learned, the chances of all, and the errors: -log of the right one's."""
    values = node.plan.values
    judged = np.minimum(classes, 1) if values["objectness"] else classes
    if judged.size and not (judged.min() >= 0 and judged.max() < values["classes"]):
        raise LayerError(
            node.name,
            f"{node.type}: a label is of class {judged.min()} or {judged.max()}; "
            f"cls_num is {values['classes']}",
        )
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    likely = np.take_along_axis(chances, judged[:, None], 1)[:, 0]
    return judged, chances, -np.log(np.maximum(likely, TINY))


def chosen(
    classes: Array, overlaps: Array, ranks: Array, values: Mapping[str, Any], rng: Any
) -> Array:
    """Which places learn, of all anchors of each image together."""
    many = len(values["sizes"])
    kept = np.zeros(classes.shape, bool)
    images = len(classes) // many
    shape = (images, many * int(np.prod(classes.shape[1:])))
    for own, label, overlap, rank in zip(
        kept.reshape(shape),
        classes.reshape(shape),
        overlaps.reshape(shape),
        ranks.reshape(shape),
        strict=True,
    ):
        objects = np.flatnonzero(label > 0)
        others = np.flatnonzero((label == 0) & (overlap < values["bg_threshold"]))
        positive, negative = numbers(len(objects), len(others), values)
        if len(objects) > positive:
            objects = rng.permutation(objects)[:positive]
        own[objects] = True
        own[_mined(others, rank[others], negative, values["mining"], rng)] = True
    return kept


def numbers(objects: int, others: int, values: Mapping[str, Any]) -> tuple[int, int]:
    """How many places of an image with and without an object learn."""
    batch, multiple = values["batch_size"], values["bg_multiple"]
    if batch == -1:
        return objects, min(max(objects * multiple, values["min_num_neg"]), others)
    positive = min(int(batch / (1 + multiple) + 0.5), objects)
    return positive, min(batch - positive, others)


def _mined(others: Array, ranks: Array, most: int, mining: str, rng: Any) -> Array:
    """Background by chance, the worst first, or half and half."""
    if len(others) <= most:
        return others
    hard = {"random": 0, "bootstrap": most, "mixture": int(most * 0.5 + 0.5)}[mining]
    order = np.lexsort((others, ranks))[::-1]
    chosen = [order[:hard], rng.permutation(order[hard:])[: most - hard]]
    return np.asarray(others[np.concatenate(chosen)])


def weighted(classes: Array, kept: Array, values: Mapping[str, Any]) -> Array:
    """With pos_neg_weighted objects have one of 1 + bg_multiple parts of all weight."""
    weights = np.ones(classes.shape)
    if values["weighted"]:
        part = 1 / (1 + values["bg_multiple"])
        for some, share in ((classes > 0, part), (classes <= 0, 1 - part)):
            if (some & kept).any():
                weights[some] = share * kept.sum() / (some & kept).sum()
    return weights


def box_loss(
    deltas: Array, labels: Array, boxed: Array, values: Mapping[str, Any]
) -> tuple[float, Array]:
    """The loss of the deltas, and its slope: means over all numbers that learn."""
    found = bounded(deltas, values) if values["bounded"] else deltas
    learns = np.broadcast_to(boxed[:, None], deltas.shape)
    away = np.where(learns, found - targets(labels, values), 0)
    losses, slope = away**2 / 2, away
    if values["box_loss"] == "Smooth_L1":
        losses = np.where(abs(away) < 1, losses, abs(away) - 0.5)
        slope = np.clip(away, -1, 1)
    many = max(int(np.count_nonzero(learns)), 1)
    return float(losses.sum()) / many, slope / many
