"""Cascade R-CNN (Cai and Vasconcelos, 2018): DecodeBBox, ScaleRoute and FrcnnOutput."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparknet.errors import LayerError, clean
from sparknet.layers.anchors import LARGEST, suppress
from sparknet.layers.host import Blobs, Host, put_rows, rows_of
from sparknet.layers.layer import (
    EVERY,
    Arity,
    BoxRows,
    Layer,
    Plan,
    Shape,
    at_least,
    count,
    exactly,
    layer,
    legacy_shape,
    shape_text,
)
from sparknet.layers.ssd import refuse_saving

Array = np.ndarray[Any, Any]
OVERLAPS = ("IOU", "IOMU", "IOFU")
"""What an overlap is a part of: the union, the smaller box, the first one."""


def scaling(layer: Layer) -> dict[str, tuple[float, ...]]:
    """Values: means and stds of ``bbox_reg_param``, by which deltas are scaled."""
    options = layer.parameter.bbox_reg_param
    means, stds = tuple(options.bbox_mean), tuple(options.bbox_std)
    if not means or not stds:
        return {"means": (0.0,) * 4, "stds": (1.0,) * 4}
    if len(means) != 4 or len(stds) != 4 or min(stds) <= 0:
        layer.fail("bbox_reg_param needs 4 of bbox_mean, and 4 of bbox_std that are positive")
    return {"means": means, "stds": stds}


def check_overlap(layer: Layer, kind: str) -> str:
    if kind not in OVERLAPS:
        layer.fail(f"nms_type '{clean(kind)}' must be one of {', '.join(OVERLAPS)}")
    return kind


def decode(deltas: Array, priors: Array, means: Any, stds: Any) -> Array:
    """Boxes (N x classes x 4) that deltas (N x 4 classes) make of priors (N x 4)."""
    scaled = deltas.reshape(len(deltas), deltas.shape[1] // 4, 4).astype(np.float64) * stds + means
    sizes = (priors[:, 2:] - priors[:, :2] + 1)[:, None]
    centres = (priors[:, 2:] + priors[:, :2])[:, None] / 2
    middle = scaled[..., :2] * sizes + centres
    size = sizes * np.exp(np.minimum(scaled[..., 2:], LARGEST))
    low = middle - (size - 1) / 2
    return np.concatenate([low, low + size - 1], -1)


def paired_overlaps(one: Array, two: Array) -> Array:
    """Return the IoU of boxes in the same rows; a box without a size overlaps nothing."""
    sizes = [np.maximum(boxes[..., 2:4] - boxes[..., :2] + 1, 0) for boxes in (one, two)]
    low = np.maximum(one[..., :2], two[..., :2])
    high = np.minimum(one[..., 2:4], two[..., 2:4])
    real = (sizes[0] > 0).all(-1) & (sizes[1] > 0).all(-1)
    common = np.where(real & (low <= high).all(-1), (high - low + 1).prod(-1), 0)
    union = sizes[0].prod(-1) + sizes[1].prod(-1) - common
    return np.asarray(np.divide(common, union, out=np.zeros_like(common), where=union > 0))


def inside(boxes: Array, high: float, wide: float) -> Array:
    """Return boxes cut off at 0 and at the image's size, one pixel after its last."""
    most = np.array([wide, high])
    return np.concatenate([np.maximum(boxes[..., :2], 0), np.minimum(boxes[..., 2:4], most)], -1)


def nms(boxes: Array, threshold: float, kind: str, most: int, pixel: int) -> Array:
    """Return the boxes left by an overlap of `OVERLAPS`; ``pixel`` is what a side counts more."""
    low, high = boxes[:, :2], boxes[:, 2:4]
    area = np.where((low <= high).all(1), (high - low + pixel).prod(1), 0)

    def share(first: int, left: Array) -> Array:
        sides = np.minimum(high[first], high[left]) - np.maximum(low[first], low[left])
        # Boxes that touch in one column overlap there; in one row they do not.
        meet = (sides[:, 0] >= 0) & (sides[:, 1] > 0) & (area[first] > 0) & (area[left] > 0)
        common = np.where(meet, (sides + pixel).prod(1), 0)
        whole = {
            "IOU": area[first] + area[left] - common,
            "IOMU": np.minimum(area[first], area[left]),
            "IOFU": np.broadcast_to(area[first], common.shape),
        }[kind]
        return np.asarray(np.divide(common, whole, out=np.zeros_like(common), where=whole > 0))

    return suppress(len(boxes), threshold, most, share)


class DecodeBBoxHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        rows = bottoms[1].data.reshape(-1, 5)
        deltas = bottoms[0].data.reshape(-1, 8)
        boxes = decode(deltas, rows[:, 1:], values["means"], values["stds"])[:, 1]
        put_rows(tops[0], np.concatenate([rows[:, :1], boxes], 1))


@layer("DecodeBBox")
class DecodeBBox(Layer):
    """decode_bbox_layer.cpp; bottoms: deltas (N x 8, the last four count), boxes (N x 5)."""

    host = DecodeBBoxHost
    field = "decode_bbox_param"
    fields = ("bbox_reg_param",)
    bottoms = exactly(2)
    has_gradient = False

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        shapes = [
            legacy_shape(self, s, n) for s, n in zip(bottoms, ("deltas", "boxes"), strict=True)
        ]
        widths = [shape[1:] for shape in shapes]
        if widths != [(8, 1, 1), (5, 1, 1)] or shapes[0][0] != shapes[1][0]:
            self.fail(
                "takes N x 8 deltas and N x 5 boxes; they are "
                f"{shape_text(bottoms[0])} and {shape_text(bottoms[1])}"
            )
        return Plan((bottoms[1],), values=scaling(self))


class ScaleRouteHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        boxes = bottoms[0].data.reshape(-1, 5)[:, 1:].astype(np.float64)
        if not len(boxes):
            raise LayerError(self.node.name, "ScaleRoute: there is no box")
        size = boxes[:, 2:] - boxes[:, :2]
        scales = np.sqrt(np.where((size >= 0).all(1), (size + 1).prod(1), 0))
        places = np.flatnonzero((scales >= values["low"]) & (scales < values["high"]))
        if not len(places):
            with np.errstate(divide="ignore"):
                far = np.abs(np.log2(scales / values["middle"]))
            places = far.argmin()[None]
        for bottom, top in zip(bottoms, tops, strict=True):
            put_rows(top, bottom.data[places])


@layer("ScaleRoute")
class ScaleRoute(Layer):
    """scale_route_layer.cpp of Cascade R-CNN; bottoms: boxes (N x 5), and anything that has a row
    for each box.

    Each bottom has a top with the rows whose box has a scale (the root of its area) from low_scale
    to below high_scale; where there is none, the box of the scale nearest to the middle.  Their
    number is known only in the forward pass."""

    host = ScaleRouteHost
    field = "scale_route_param"
    bottoms = at_least(1)
    tops = Arity(1, None, like_bottoms=True)
    has_gradient = False
    has_dynamic_tops = True
    other_bottoms = "indices"

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        options = self.options
        low = options.low_scale if options.HasField("low_scale") else 0.0
        high = options.high_scale if options.HasField("high_scale") else math.inf
        if not 0 <= low <= high or (options.HasField("low_scale") and low == 0):
            self.fail(f"needs a low_scale above 0 and at most high_scale; they are {low}, {high}")
        shapes = [legacy_shape(self, shape, "a bottom") for shape in bottoms]
        for number, shape in enumerate(shapes):
            if shape[0] != shapes[0][0] or (number == 0 and shape[1:] != (5, 1, 1)):
                self.fail(
                    "takes N x 5 boxes, and N rows of what else there is; "
                    f"bottom {number} is {shape_text(bottoms[number])}"
                )
        values = {"low": low, "high": high, "middle": _middle(low, high)}
        return Plan(tuple((1, *shape[1:]) for shape in shapes), values=values)


def _middle(low: float, high: float) -> float:
    if low and high < math.inf:
        return math.sqrt(low * high)
    if low:
        return low
    return high if high < math.inf else 256.0


class FrcnnOutputHost(Host):
    def forward(self, bottoms: Blobs, tops: Blobs) -> None:
        values = self.node.plan.values
        scores = rows_of(bottoms[0].data)
        priors = rows_of(bottoms[2].data)[:, 1:5]
        deltas = rows_of(bottoms[1].data)
        boxes = decode(deltas, priors, values["means"], values["stds"])
        high, wide = bottoms[3].data.ravel()[:2]
        rows = [np.array([[0.0] + [-1] * 6])]
        for label in range(1, scores.shape[1]):
            likely = np.flatnonzero(scores[:, label] >= values["conf_thr"])
            likely = likely[np.argsort(-scores[likely, label], kind="stable")]
            own = inside(boxes[likely, label if values["cls_aware"] else 1], high, wide)
            places = nms(own, values["iou_thr"], values["nms_type"], len(own), 1)
            facts = np.stack([np.full(len(places), label), scores[likely[places], label]], 1)
            rows.append(np.concatenate([np.zeros((len(places), 1)), own[places], facts], 1))
        detections = np.concatenate(rows)
        most = values["max_det_num"]
        if most and len(detections) - 1 > most:
            best = np.sort(np.argsort(-detections[1:, 6], kind="stable")[:most] + 1)
            detections = detections[np.concatenate([[0], best])]
        put_rows(tops[0], detections)


@layer("FrcnnOutput")
class FrcnnOutput(BoxRows):
    """frcnn_output_layer.cpp; bottoms: scores (N x classes), deltas, boxes (N x 5 or 6) of one
    image, and the image's height and width.

    The top begins with a row (0, -1 …) and has rows (0, x1, y1, x2, y2, class, score), class by
    class.  Boxes end at the image's height and width at most; nms_type is BoxOutput's.  The number
    of boxes is known only in the forward pass.  A save_output_param that would write files is
    refused."""

    host = FrcnnOutputHost
    field = "frcnn_output_param"
    fields = ("bbox_reg_param",)
    bottoms = exactly(4)
    plain_options = EVERY

    def infer(self, bottoms: Sequence[Shape]) -> Plan:
        refuse_saving(self)
        options, aware = self.options, self.parameter.bbox_reg_param.cls_aware
        names = ("scores", "deltas", "boxes")
        shapes = [legacy_shape(self, s, n) for s, n in zip(bottoms[:3], names, strict=True)]
        width = 4 * shapes[0][1] if aware else 8
        same = len({(shape[0], *shape[2:]) for shape in shapes} | {(shapes[0][0], 1, 1)}) == 1
        if not same or shapes[1][1] != width or shapes[2][1] not in (5, 6):
            self.fail(
                f"scores {shape_text(bottoms[0])} need deltas of {width} values and boxes of 5; "
                f"they are {shape_text(bottoms[1])} and {shape_text(bottoms[2])}"
            )
        if count(bottoms[3]) < 2:
            self.fail(f"needs the image's height and width, not {shape_text(bottoms[3])}")
        values = {
            "nms_type": check_overlap(self, options.nms_type),
            "cls_aware": aware,
            **scaling(self),
        }
        return Plan(((1, 7, 1, 1),), values=values)
