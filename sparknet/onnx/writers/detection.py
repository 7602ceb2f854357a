"""SSD's boxes: priors as constants, detections by NonMaxSuppression."""

from __future__ import annotations

import numpy as np

from sparknet.onnx.layer_export import LayerExport, writes
from sparknet.onnx.source import Array

LOWEST = -1e30


@writes("PriorBox", "PriorBoxClustered")
def prior_box(place: LayerExport) -> None:
    """They depend on sizes alone."""
    values = place.values
    variances = np.resize(np.asarray(values["variances"], np.float32), 4)
    if len(values["variances"]) == 1:
        variances[:] = values["variances"][0]
    boxes = _boxes(place)
    both = np.stack([boxes.ravel(), np.tile(variances, len(boxes))])[None]
    place.last("Identity", [place.constant(both)])


def _boxes(place: LayerExport) -> Array:
    values = place.values
    y, x = np.meshgrid(
        (np.arange(values["layer_h"]) + values["offset"]) * values["step_h"],
        (np.arange(values["layer_w"]) + values["offset"]) * values["step_w"],
        indexing="ij",
    )
    half_w, half_h = np.asarray(values["widths"]) / 2, np.asarray(values["heights"]) / 2
    x = x[..., None] + np.asarray(values["shifts_x"])
    y = y[..., None] + np.asarray(values["shifts_y"])
    corners = [x - half_w, y - half_h, x + half_w, y + half_h]
    scales = (values["img_w"], values["img_h"]) * 2
    boxes = np.stack([one / scale for one, scale in zip(corners, scales, strict=True)], -1)
    if values["clip"]:
        boxes = boxes.clip(0, 1)
    return boxes.reshape(-1, 4).astype(np.float32)


@writes("DetectionOutput")
def detection_output(place: LayerExport) -> None:
    values = place.values
    if place.draft.batch != 1:
        place.refuse(f"detections are written for one image; the batch is {place.draft.batch}")
    if not values["share_location"] or values["eta"] != 1 or len(place.inputs) > 3:
        place.refuse("boxes of each class, eta below 1 and a fourth bottom are not written")
    boxes = _decoded(place)
    scores = _scores(place)
    count = int(values["priors"])
    least = values["confidence_threshold"]
    selected = place.put(
        "NonMaxSuppression",
        [
            boxes,
            scores,
            place.whole([count]),
            place.constant([values["nms_threshold"]]),
            place.constant([LOWEST / 10 if least is None else least]),
        ],
    )
    label = place.put("Gather", [selected, place.whole(1)], axis=1)
    number = place.put("Gather", [selected, place.whole(2)], axis=1)
    at = place.put("Add", [place.put("Mul", [label, place.whole(count)]), number])
    score = place.put("Gather", [place.put("Reshape", [scores, place.whole([-1])]), at], axis=0)
    if values["keep_top_k"] > -1:
        best = _best(place, score, int(values["keep_top_k"]))
        label, number, score = (
            place.put("Gather", [one, best], axis=0) for one in (label, number, score)
        )
    flat = place.put("Squeeze", [boxes, place.whole([0])])
    columns = [
        place.put("Mul", [score, place.constant(0.0)]),
        place.put("Cast", [label], to=1),
        score,
    ]
    parts = [place.put("Unsqueeze", [one, place.whole([1])]) for one in columns]
    rows = place.put("Concat", [*parts, place.put("Gather", [flat, number], axis=0)], axis=1)
    place.last("Reshape", [rows, place.whole([1, 1, -1, 7])])


def _decoded(place: LayerExport) -> str:
    """Boxes from what was predicted and the priors (SSD: bbox_util.cpp, DecodeBBox)."""
    values = place.values
    count = int(values["priors"])
    offsets = place.put("Reshape", [place.inputs[0], place.whole([1, count, 4])])
    priors = place.put("Reshape", [place.inputs[2], place.whole([2, count, 4])])
    prior, variance = (f"{priors}/{name}" for name in ("boxes", "variances"))
    place.put("Split", [priors, place.whole([1, 1])], [prior, variance], axis=0)
    if not values["variance_encoded_in_target"]:
        offsets = place.put("Mul", [offsets, variance])
    if values["code_type"] == "corner":
        return place.put("Add", [prior, offsets])
    halves = place.whole([2, 2])
    low, high = f"{prior}/low", f"{prior}/high"
    place.put("Split", [prior, halves], [low, high], axis=2)
    first, second = f"{offsets}/first", f"{offsets}/second"
    place.put("Split", [offsets, halves], [first, second], axis=2)
    size = place.put("Sub", [high, low])
    if values["code_type"] == "corner_size":
        moved = (
            place.put("Add", [corner, place.put("Mul", [offset, size])])
            for corner, offset in ((low, first), (high, second))
        )
        return place.put("Concat", list(moved), axis=2)
    half = place.constant(0.5)
    middle = place.put("Mul", [place.put("Add", [low, high]), half])
    centre = place.put("Add", [middle, place.put("Mul", [first, size])])
    reach = place.put("Mul", [place.put("Mul", [place.put("Exp", [second]), size]), half])
    ends = [place.put("Sub", [centre, reach]), place.put("Add", [centre, reach])]
    return place.put("Concat", ends, axis=2)


def _scores(place: LayerExport) -> str:
    """Class by class; the background, and what is not among the best, far below any threshold."""
    values = place.values
    count, classes = int(values["priors"]), int(values["num_classes"])
    rows = place.put("Reshape", [place.inputs[1], place.whole([1, count, classes])])
    scores = place.put("Transpose", [rows], perm=[0, 2, 1])
    lowest = place.constant(LOWEST)
    ground = np.arange(classes).reshape(1, -1, 1) == values["background_label_id"]
    if ground.any():
        hidden = place.constant(ground, np.bool_)
        scores = place.put("Where", [hidden, lowest, scores])
    best = int(values["top_k"])
    if not -1 < best < count:
        return scores
    top = f"{scores}/best"
    place.put("TopK", [scores, place.whole([best])], [top, f"{top}/places"], axis=2)
    bounds = (place.whole([one]) for one in (best - 1, best, 2))
    edge = place.put("Slice", [top, *bounds])
    below = place.put("Less", [scores, edge])
    return place.put("Where", [below, lowest, scores])


def _best(place: LayerExport, score: str, max_rows: int) -> str:
    """Return the places of the highest scores in their order; OpenCV 5.0 takes no empty TopK."""
    rows = place.constant(np.full(max_rows, LOWEST))
    values, places = f"{score}/best", f"{score}/places"
    inputs = [place.put("Concat", [score, rows], axis=0), place.whole([max_rows])]
    place.put("TopK", inputs, [values, places], axis=0)
    ordered = f"{places}/ordered"
    inputs = [places, place.whole([max_rows])]
    place.put("TopK", inputs, [ordered, f"{ordered}/from"], axis=0, largest=0)
    count = place.put("Min", [place.put("Shape", [score]), place.whole([max_rows])])
    return place.put("Slice", [ordered, place.whole([0]), count, place.whole([0])])
