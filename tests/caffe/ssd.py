"""SSD's box arithmetic, slow and obvious: one loop for every sentence of the paper."""

from collections.abc import Sequence

import numpy as np

Box = Sequence[float]


def area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(a: Box, b: Box) -> float:
    both = (max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3]))
    return area(both) / (area(a) + area(b) - area(both)) if area(both) else 0.0


def center_size(box):
    """Center x and y, width, height."""
    x0, y0, x1, y1 = box
    return np.array([(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0])


def encode(code, prior, variance, box, plain=False):
    prior, box = np.asarray(prior, np.float64), np.asarray(box, np.float64)
    _, _, width, height = center_size(prior)
    if code == "CENTER_SIZE":
        ours, theirs = center_size(box), center_size(prior)
        offsets = np.concatenate([(ours - theirs)[:2] / theirs[2:], np.log(ours / theirs)[2:]])
    elif code == "CORNER_SIZE":
        offsets = (box - prior) / (width, height, width, height)
    else:
        offsets = box - prior
    return offsets if plain else offsets / variance


def decode(code, prior, variance, offsets, plain=False):
    prior, offsets = np.asarray(prior, np.float64), np.asarray(offsets, np.float64)
    offsets = offsets if plain else offsets * variance
    x, y, width, height = center_size(prior)
    if code == "CENTER_SIZE":
        x, y = x + offsets[0] * width, y + offsets[1] * height
        half = np.array([width * np.exp(offsets[2]), height * np.exp(offsets[3])]) / 2
        return np.array([x - half[0], y - half[1], x + half[0], y + half[1]])
    if code == "CORNER_SIZE":
        return prior + offsets * (width, height, width, height)
    return prior + offsets


def suppress(boxes, ranked, threshold, eta=1):
    kept: list[int] = []
    for i in ranked:
        if all(overlap(boxes[i], boxes[k]) <= threshold for k in kept):
            kept.append(i)
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return kept


def detect(
    locations,
    confidences,
    priors,
    *,
    classes,
    share=True,
    background=0,
    code="CORNER",
    plain=False,
    keep=-1,
    least=-np.inf,
    threshold=0.3,
    top_k=-1,
    eta=1,
):
    """DetectionOutput's rows: image, label, score, box."""
    boxes, variances = priors.reshape(2, -1, 4)
    count, rows = len(boxes), []
    for image, (offsets, scores) in enumerate(zip(locations, confidences, strict=True)):
        offsets = offsets.reshape(count, 1 if share else classes, 4)
        scores = scores.reshape(count, classes)
        found = []
        for label in set(range(classes)) - {background}:
            own = [
                decode(code, boxes[p], variances[p], offsets[p][0 if share else label], plain)
                for p in range(count)
            ]
            ranked = list(np.argsort(-scores[:, label], kind="stable"))
            ranked = [p for p in ranked if scores[p, label] > least]
            ranked = ranked[:top_k] if top_k > -1 else ranked
            for place, p in enumerate(suppress(own, ranked, threshold, eta)):
                found.append((label, place, scores[p, label], own[p]))
        if -1 < keep < len(found):
            found = sorted(found, key=lambda one: -one[2])[:keep]
        rows += [[image, one[0], one[2], *one[3]] for one in sorted(found, key=lambda o: o[:2])]
    rows = rows or [[image] + [-1] * 6 for image in range(len(locations))]
    return np.array(rows).reshape(1, 1, -1, 7)
