"""DetectionLoss: the loss of chosen places (MS-CNN: detection_loss_layer.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob, ParamBlob
from sparknet.caffe.host.host import DrawingHost
from sparknet.forks.cascade_rcnn.hosts.detection_group_loss import box_loss, judge
from sparknet.graph import Node

Array = np.ndarray[Any, Any]
LEAST = 4
"""Places of the background that each class draws at least."""


class DetectionLossHost(DrawingHost):
    def __init__(self, node: Node, params: Sequence[ParamBlob], seed: int) -> None:
        super().__init__(node, params, seed)
        self.slope = np.zeros(0)

    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = {**self.node.plan.values, "bounded": True}
        predicted, labels = (bottom.data.astype(np.float64) for bottom in bottoms)
        scores, deltas = np.split(predicted, [values["classes"]], 1)
        classes = labels[:, 0].astype(np.int64)
        judged, chances, errors = judge(self.node, classes, scores)
        background = chosen(judged, labels[:, 5], scores, values, self.rng)
        learns = ((judged != 0) | background) & (judged != values["ignore_label"])
        share = weights(classes, background, labels[:, 5], values) * learns
        share /= max(np.count_nonzero(learns), 1)
        boxed = (classes != 0) & (classes != values["ignore_label"])
        loss, slope = box_loss(deltas, labels, boxed, values)
        wanted = np.arange(values["classes"])[None, :, None, None] == judged[:, None]
        parts = (chances - wanted) * share[:, None], slope * values["lambda"]
        self.slope = np.concatenate(parts, 1)
        loss *= values["lambda"]
        tops[0].data[...] = [[[[(errors * share).sum() + loss, loss]]]]

    def backward(
        self, tops: Sequence[Blob], propagate_down: Sequence[bool], bottoms: Sequence[Blob]
    ) -> None:
        if propagate_down[0]:
            bottoms[0].diff[...] = self.slope * float(tops[0].diff.ravel()[0])


def chosen(
    classes: Array, overlaps: Array, scores: Array, values: Mapping[str, Any], rng: Any
) -> Array:
    """The places of the background that learn, of each image."""
    free = (classes == 0) & (overlaps < values["bg_threshold"])
    if values["sample"] == "all":
        return np.asarray(free)
    part = 0.5 if values["sample"] == "mixture" else 1.0
    kept = np.zeros(classes.shape, bool)
    for own, label, room, score in zip(kept, classes, free, scores, strict=True):
        flat, places = own.reshape(-1), np.flatnonzero(room)
        if values["sample"] != "bootstrap":
            wanted = int(np.count_nonzero(label) * values["bg_multiple"] * part)
            wanted = max(wanted, LEAST * (values["classes"] - 1))
            drawn = np.zeros(flat.shape, bool)
            drawn[rng.integers(0, flat.size, wanted)] = True
            flat |= drawn & room.reshape(-1)
        if values["sample"] != "random":
            for number in range(1, values["classes"]):
                many = int(np.count_nonzero(label == number) * values["bg_multiple"] * part)
                ranked = np.lexsort((-places, -score[number].reshape(-1)[places]))
                flat[places[ranked[: max(many, LEAST)]]] = True
    return kept


def weights(classes: Array, background: Array, overlaps: Array, values: Mapping[str, Any]) -> Array:
    """Objects weigh as much as they overlap; with pos_neg_weighted all of them together have one of
    1 + bg_multiple parts."""
    objects = classes != 0
    found = np.where(objects, overlaps, 1.0) if values["iou_weighted"] else np.ones(classes.shape)
    if values["weighted"] and found[objects].sum() and found[background].sum():
        many = np.count_nonzero(objects) + np.count_nonzero(background)
        part = 1 / (1 + values["bg_multiple"])
        found[objects] *= part * many / found[objects].sum()
        found[~objects] *= (1 - part) * many / found[background].sum()
    return np.asarray(found)
