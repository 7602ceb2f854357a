"""SSD's box arithmetic, slow and obvious: one loop for every sentence of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Box = Sequence[float]


def area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(a: Box, b: Box) -> float:
    both = (max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3]))
    return area(both) / (area(a) + area(b) - area(both)) if area(both) else 0.0


def center_size(box: Any) -> Any:
    """Center x and y, width, height."""
    x0, y0, x1, y1 = box
    return np.array([(x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0])


def encode(code: str, prior: Any, variance: Any, box: Any, plain: bool = False) -> Any:
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


def decode(code: str, prior: Any, variance: Any, offsets: Any, plain: bool = False) -> Any:
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


def suppress(boxes: Any, ranked: Sequence[int], threshold: float, eta: float = 1) -> list[int]:
    kept: list[int] = []
    for i in ranked:
        if all(overlap(boxes[i], boxes[k]) <= threshold for k in kept):
            kept.append(i)
            if eta < 1 and threshold > 0.5:
                threshold *= eta
    return kept


def detect(
    locations: Any,
    confidences: Any,
    priors: Any,
    *,
    classes: int,
    share: bool = True,
    background: int = 0,
    code: str = "CORNER",
    plain: bool = False,
    keep: int = -1,
    least: float = -np.inf,
    threshold: float = 0.3,
    top_k: int = -1,
    eta: float = 1,
) -> Any:
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


def match(
    boxes: Any, truths: Any, threshold: float, each: bool, skip_outside: bool = False
) -> tuple[list[int], list[float]]:
    """For every box its true box (-1: none, -2: outside the image) and its largest overlap."""
    table = np.array([[overlap(box, truth) for truth in truths] for box in boxes])
    table = np.where(table > 1e-6, table, 0).reshape(len(boxes), len(truths))
    found = [-1] * len(boxes)
    if skip_outside:
        for i, box in enumerate(boxes):
            if min(box) < 0 or max(box) > 1:
                found[i], table[i] = -2, 0
    best = [float(max(row, default=0)) for row in table]
    left = table.copy()
    while left.size and left.max() > 0:
        i, t = np.unravel_index(left.argmax(), left.shape)
        found[i], best[i] = int(t), float(table[i, t])
        left[i], left[:, t] = 0, 0
    for i, row in enumerate(table):
        if each and found[i] == -1 and row.size and 0 < row.max() >= threshold:
            found[i] = int(row.argmax())
    return found, best


def location_loss(residual: Any, kind: str) -> float:
    small = 0.5 * residual**2
    size = np.abs(residual)
    return float(np.sum(small if kind == "L2" else np.where(size < 1, small, size - 0.5)))


def confidence_loss(scores: Any, labels: Sequence[int], kind: str) -> float:
    """Softmax of the one label; logistic of any number of labels."""
    if kind == "SOFTMAX":
        (label,) = labels
        return float(np.log(np.sum(np.exp(scores - scores.max()))) - scores[label] + scores.max())
    target = np.isin(np.arange(len(scores)), list(labels))
    return float(np.sum(np.logaddexp(0, scores) - scores * target))


def multibox(
    locations: Any,
    confidences: Any,
    priors: Any,
    truths: Any,
    *,
    classes: int,
    share: bool = True,
    background: int = 0,
    code: str = "CORNER",
    plain: bool = False,
    by_prior: bool = True,
    each: bool = True,
    threshold: float = 0.5,
    skip_outside: bool = False,
    inside: bool = False,
    difficult: bool = True,
    mining: str = "MAX_NEGATIVE",
    ratio: float = 3,
    negative_overlap: float = 0.5,
    sample: int = 64,
    nms: float = 0,
    prior_nms: bool = False,
    conf: str = "SOFTMAX",
    loc: str = "SMOOTH_L1",
    weight: float = 1,
    normalization: str = "VALID",
) -> float:
    """MultiBoxLoss's one number."""
    boxes, variances = (part.astype(np.float64) for part in priors.reshape(2, -1, 4))
    count, images = len(boxes), len(locations)
    total_loc = total_conf = 0.0
    matches = 0
    for image in range(images):
        offsets = locations[image].reshape(count, -1, 4).astype(np.float64)
        scores = confidences[image].reshape(count, classes).astype(np.float64)
        own = [row for row in truths.reshape(-1, 8) if row[0] == image]
        own = [row for row in own if difficult or not row[7]]
        targets: dict[int, list[int]] = {}
        chosen: set[int] = set()
        sets = [0] if share else [c for c in range(classes) if c != background]
        for which in sets if own else []:

            def predicted(p: int, which: int = which, offsets: Any = offsets) -> Any:
                return decode(code, boxes[p], variances[p], offsets[p, which], plain)

            def residual(p: int, truth: Any, which: int = which, offsets: Any = offsets) -> Any:
                wanted = encode(code, boxes[p], variances[p], truth[3:7], plain)
                gap = (offsets[p, which] - wanted) / (variances[p] if plain else 1)
                at = boxes[p] if by_prior else predicted(p)
                return np.where((at < 0) | (at > 1), 0, gap) if inside else gap

            candidates = own
            places = boxes if by_prior else [predicted(p) for p in range(count)]
            if not share and not by_prior:
                candidates = [row for row in own if row[1] == which]
            corners = [row[3:7] for row in candidates]
            found, best = match(places, corners, threshold, each, skip_outside)
            if not share:
                found = [t if t >= 0 and candidates[t][1] == which else -1 for t in found]
            positives = {p: candidates[t] for p, t in enumerate(found) if t >= 0}
            if mining != "NONE":
                hard = mining == "HARD_EXAMPLE"
                eligible = [
                    p
                    for p in range(count)
                    if hard or (found[p] == -1 and best[p] < negative_overlap)
                ]
                cost = {}
                for p in eligible:
                    label = int(positives[p][1]) if p in positives else background
                    cost[p] = confidence_loss(scores[p], [label], conf)
                    if hard and p in positives:
                        cost[p] += location_loss(residual(p, positives[p]), loc)
                ranked = sorted(eligible, key=lambda p: -cost[p])
                if nms:
                    at = boxes if prior_nms else [predicted(p) for p in range(count)]
                    ranked = suppress(at, [p for p in ranked if area(at[p]) >= 1e-5], nms)
                chosen = set(ranked[: sample if hard else int(len(positives) * ratio)])
                if hard:
                    positives = {p: row for p, row in positives.items() if p in chosen}
                chosen = {p for p in chosen if found[p] == -1}
            for p, row in positives.items():
                total_loc += location_loss(residual(p, row), loc)
                targets.setdefault(p, []).append(int(row[1]))
            matches += len(positives)
        for p in range(count):
            if p in targets:
                labels = targets[p][-1:] if conf == "SOFTMAX" else targets[p]
            elif p in chosen or (mining == "NONE" and conf == "SOFTMAX"):
                labels = [background]
            elif mining == "NONE":
                labels = []
            else:
                continue
            total_conf += confidence_loss(scores[p], labels, conf)
    over = {"FULL": images * count, "VALID": matches, "BATCH_SIZE": images, "NONE": 1}
    return (weight * total_loc + total_conf) / max(1, over[normalization])
