"""MultiBoxLoss, slow and obvious: one loop for every sentence of the SSD paper."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.caffe.ssd import area, decode, encode, overlap, suppress

Row = Any
"""A true box: image, label, group, box (4), whether it is difficult."""


def match(boxes, truths, threshold, each, skip_outside=False):
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


def location_loss(residual, kind):
    small = 0.5 * residual**2
    size = np.abs(residual)
    return float(np.sum(small if kind == "L2" else np.where(size < 1, small, size - 0.5)))


def confidence_loss(scores, labels, kind):
    """Softmax of the one label; logistic of any number of labels."""
    if kind == "SOFTMAX":
        (label,) = labels
        return float(np.log(np.sum(np.exp(scores - scores.max()))) - scores[label] + scores.max())
    target = np.isin(np.arange(len(scores)), list(labels))
    return float(np.sum(np.logaddexp(0, scores) - scores * target))


@dataclass(frozen=True)
class Settings:
    """multibox_loss_param, by shorter names."""

    classes: int
    share: bool = True
    background: int = 0
    code: str = "CORNER"
    plain: bool = False
    by_prior: bool = True
    each: bool = True
    threshold: float = 0.5
    skip_outside: bool = False
    inside: bool = False
    difficult: bool = True
    mining: str = "MAX_NEGATIVE"
    ratio: float = 3
    negative_overlap: float = 0.5
    sample: int = 64
    nms: float = 0
    prior_nms: bool = False
    conf: str = "SOFTMAX"
    loc: str = "SMOOTH_L1"
    weight: float = 1
    normalization: str = "VALID"

    @property
    def location_sets(self) -> list[int]:
        """One for all classes, or one for each but the background."""
        return [0] if self.share else [c for c in range(self.classes) if c != self.background]


@dataclass
class Matching:
    """What one set of locations was matched with, and the negatives that count."""

    positives: dict[int, Row]
    negatives: set[int]


@dataclass(frozen=True)
class Image:
    """The priors, and what a net says of one image."""

    settings: Settings
    boxes: Any
    variances: Any
    offsets: Any
    scores: Any
    truths: list[Row]

    def predicted(self, p, which):
        prior = self.boxes[p], self.variances[p]
        return decode(self.settings.code, *prior, self.offsets[p, which], self.settings.plain)

    def residual(self, p, which, truth):
        use = self.settings
        expected = encode(use.code, self.boxes[p], self.variances[p], truth[3:7], use.plain)
        gap = (self.offsets[p, which] - expected) / (self.variances[p] if use.plain else 1)
        at = self.boxes[p] if use.by_prior else self.predicted(p, which)
        return np.where((at < 0) | (at > 1), 0, gap) if use.inside else gap

    def location_loss(self, p: int, which: int, truth: Row) -> float:
        return location_loss(self.residual(p, which, truth), self.settings.loc)

    def matched(self, which: int) -> Matching:
        use = self.settings
        count = range(len(self.boxes))
        places = self.boxes if use.by_prior else [self.predicted(p, which) for p in count]
        candidates = self.truths
        if not use.share and not use.by_prior:
            candidates = [row for row in candidates if row[1] == which]
        corners = [row[3:7] for row in candidates]
        found, best = match(places, corners, use.threshold, use.each, use.skip_outside)
        if not use.share:
            found = [t if t >= 0 and candidates[t][1] == which else -1 for t in found]
        made = Matching({p: candidates[t] for p, t in enumerate(found) if t >= 0}, set())
        if use.mining != "NONE":
            self.mine(made, which, found, best)
        return made

    def mine(self, made: Matching, which: int, found: list[int], best: list[float]) -> None:
        """Keep the costliest: of the negatives, or of all boxes (HARD_EXAMPLE)."""
        use = self.settings
        hard = use.mining == "HARD_EXAMPLE"
        ranked = [
            p
            for p in range(len(self.boxes))
            if hard or (found[p] == -1 and best[p] < use.negative_overlap)
        ]
        ranked.sort(key=lambda p: -self.cost(p, which, made, hard))
        if use.nms:
            at = [
                self.boxes[p] if use.prior_nms else self.predicted(p, which)
                for p in range(len(self.boxes))
            ]
            ranked = suppress(at, [p for p in ranked if area(at[p]) >= 1e-5], use.nms)
        chosen = set(ranked[: use.sample if hard else int(len(made.positives) * use.ratio)])
        if hard:
            made.positives = {p: row for p, row in made.positives.items() if p in chosen}
        made.negatives = {p for p in chosen if found[p] == -1}

    def cost(self, p: int, which: int, made: Matching, hard: bool) -> float:
        truth = made.positives.get(p)
        label = self.settings.background if truth is None else int(truth[1])
        cost = confidence_loss(self.scores[p], [label], self.settings.conf)
        located = hard and truth is not None
        return cost + (self.location_loss(p, which, truth) if located else 0)

    def confidence(self, targets: dict[int, list[int]], negatives: set[int]) -> float:
        """The loss of all boxes that have a label, or count as background."""
        use, total = self.settings, 0.0
        for p in range(len(self.boxes)):
            if p in targets:
                labels = targets[p][-1:] if use.conf == "SOFTMAX" else targets[p]
            elif p in negatives or (use.mining == "NONE" and use.conf == "SOFTMAX"):
                labels = [use.background]
            elif use.mining == "NONE":
                labels = []
            else:
                continue
            total += confidence_loss(self.scores[p], labels, use.conf)
        return total

    def losses(self) -> tuple[float, float, int]:
        """Of locations, of confidences, and the number of matches."""
        located, matches = 0.0, 0
        targets: dict[int, list[int]] = {}
        negatives: set[int] = set()
        for which in self.settings.location_sets if self.truths else []:
            made = self.matched(which)
            for p, row in made.positives.items():
                located += self.location_loss(p, which, row)
                targets.setdefault(p, []).append(int(row[1]))
            matches += len(made.positives)
            negatives = made.negatives
        return located, self.confidence(targets, negatives), matches


def images(use, locations, confidences, priors, truths):
    boxes, variances = (part.astype(np.float64) for part in priors.reshape(2, -1, 4))
    count = len(boxes)
    for number, (offsets, scores) in enumerate(zip(locations, confidences, strict=True)):
        own = [row for row in truths.reshape(-1, 8) if row[0] == number]
        yield Image(
            use,
            boxes,
            variances,
            offsets.reshape(count, -1, 4).astype(np.float64),
            scores.reshape(count, use.classes).astype(np.float64),
            [row for row in own if use.difficult or not row[7]],
        )


def multibox(locations, confidences, priors, truths, **settings):
    """MultiBoxLoss's one number."""
    use = Settings(**settings)
    found = [image.losses() for image in images(use, locations, confidences, priors, truths)]
    located, confident, matches = (sum(column) for column in zip(*found, strict=True))
    over = {
        "FULL": len(found) * priors.reshape(2, -1, 4).shape[1],
        "VALID": matches,
        "BATCH_SIZE": len(found),
        "NONE": 1,
    }
    return float((use.weight * located + confident) / max(1, over[use.normalization]))
