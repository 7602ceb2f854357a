"""Which anchors hold which boxes (Cascade R-CNN: detection_data_layer.cpp; MS-CNN:
image_gt_data_layer.cpp)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.forks.cascade_rcnn.readers.boxed_pictures import Picture, Size
from sparknet.loaders.window import rounded
from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class PictureArea:
    """Where on a canvas a picture lies: its first row and column, height and width."""

    top: int
    left: int
    high: int
    wide: int


@dataclass
class Labels:
    """The labels of one anchor on a map, 6 x H x W, and of each box the best overlap there."""

    values: Array
    best: Array
    hits: Array


@dataclass(frozen=True)
class Way:
    """What the two forks do not do alike."""

    edge: int
    """What a side has beyond the difference of its corners."""
    hides: bool
    """A place in a region without labels holds no box."""
    marks: bool
    """A box that is picked up says its overlap too."""


CASCADE = Way(1, hides=False, marks=True)
MSCNN = Way(0, hides=True, marks=False)


def label_maps(
    picture: Picture,
    canvas: Size,
    place: PictureArea,
    options: caffe_pb2.DetectionDataParameter,
    way: Way = CASCADE,
) -> list[Array]:
    """Of each anchor a map of class, centre, size and overlap."""
    anchors = list(zip(options.stride, options.field_h, options.field_w, strict=True))
    maps = [_one_map(picture, canvas, place, options, way, *anchor) for anchor in anchors]
    if maps and len(picture.boxes):
        _pick_up(picture, maps, [stride for stride, _, _ in anchors], options.pickup_iou_thr, way)
    return [one.values for one in maps]


def _one_map(
    picture: Picture,
    canvas: Size,
    place: PictureArea,
    options: caffe_pb2.DetectionDataParameter,
    way: Way,
    stride: int,
    field_h: int,
    field_w: int,
) -> Labels:
    high, wide = (rounded(side / stride) for side in canvas)
    x, y = np.meshgrid((np.arange(wide) + 0.5) * stride, (np.arange(high) + 0.5) * stride)
    half = np.array([field_w, field_h]) / 2
    centres = np.stack([x, y], -1)
    fields = np.concatenate([centres - half, centres + half], -1)
    used = _inside(fields, place, stride, options)
    hidden = np.zeros((high, wide))
    for box in picture.outside:
        hidden += overlap(fields, box, of_first=True, edge=way.edge)
    hides = hidden >= options.ignore_fg_threshold
    if way.hides:
        used = used & ~hides
    found = np.zeros((6, high, wide))
    best, hits = np.zeros(len(picture.boxes)), np.zeros(len(picture.boxes), np.int64)
    most, which = np.zeros((high, wide)), np.full((high, wide), -1)
    for number, box in enumerate(picture.boxes):
        shared = np.where(used, overlap(fields, box, edge=way.edge), 0)
        best[number] = shared.max(initial=0)
        better = shared > most
        most[better], which[better] = shared[better], number
    real = used & (most > options.fg_threshold)
    boxes, facts = picture.boxes[which[real]], picture.facts[which[real]]
    found[0, real] = np.where(facts[:, 1] != 0, 0, facts[:, 0])
    found[1:5, real] = _centred(boxes, way.edge)
    found[5] = most
    found[5, (used & ~real & hides) | ~used] = 1
    np.add.at(hits, which[real], 1)
    return Labels(found, best, hits)


def _inside(
    fields: Array, place: PictureArea, stride: int, options: caffe_pb2.DetectionDataParameter
) -> Array:
    """The anchors that lie on the picture, as far as the options ask."""
    high, wide = fields.shape[:2]
    rows, columns = np.arange(high)[:, None], np.arange(wide)
    top, left = rounded(place.top / stride), rounded(place.left / stride)
    used = (rows >= top) & (rows < top + rounded(place.high / stride))
    used = used & (columns >= left) & (columns < left + rounded(place.wide / stride))
    corners = np.array([place.left, place.top, place.left + place.wide, place.top + place.high])
    if options.HasField("anchor_ignore_margin_ratio"):
        sizes = (fields[..., 2:] - fields[..., :2]) / 2
        margin = options.anchor_ignore_margin_ratio * sizes
        fits = (fields[..., :2] >= corners[:2] - margin) & (fields[..., 2:] < corners[2:] + margin)
        used = used & fits.all(-1)
    elif options.HasField("anchor_ignore_iou_thr"):
        used = used & (overlap(fields, corners, of_first=True) >= options.anchor_ignore_iou_thr)
    return used


def _pick_up(
    picture: Picture, maps: list[Labels], strides: list[int], least: float, way: Way
) -> None:
    """A box that no anchor holds goes to the place of its centre, on the map that fits best."""
    best = np.stack([one.best for one in maps])
    hits = np.stack([one.hits for one in maps]).sum(0)
    for number, box in enumerate(picture.boxes):
        label, ignored = picture.facts[number, :2]
        place = int(best[:, number].argmax())
        if ignored or hits[number] or best[place, number] < least:
            continue
        found = maps[place].values
        centre = (box[:2] + box[2:]) / 2
        column, row = np.clip(
            np.floor(centre / strides[place]).astype(np.int64),
            0,
            np.array(found.shape[:0:-1]) - 1,
        )
        if found[0, row, column] <= 0:
            found[0, row, column] = label
            found[1:5, row, column] = _centred(box[None], way.edge)[:, 0]
            if way.marks:
                found[5, row, column] = best[place, number]


def _centred(boxes: Array, edge: int) -> Array:
    """Centres and sizes, 4 x N."""
    low, high = boxes[:, :2], boxes[:, 2:]
    found: Array = np.concatenate([(low + high) / 2, high - low + edge], 1).T
    return found


def overlap(fields: Array, box: Array, of_first: bool = False, edge: int = 1) -> Array:
    """What fields (… x 4) share with a box, of the union or of the field itself.

    A box whose corners are in no order shares nothing.
    """
    low = np.maximum(fields[..., :2], box[:2])
    high = np.minimum(fields[..., 2:], box[2:])
    # The fork asks for a strict order of rows, not of columns.
    common = np.where(
        (low[..., 0] <= high[..., 0]) & (low[..., 1] < high[..., 1]),
        (high - low + edge).prod(-1),
        0,
    )
    own = (fields[..., 2:] - fields[..., :2] + edge).prod(-1)
    if (box[2:] < box[:2]).any():
        return np.zeros(own.shape)
    whole = own if of_first else own + (box[2:] - box[:2] + edge).prod() - common
    return np.asarray(common / whole)
