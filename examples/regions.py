"""What finds the shapes of scenes.py without a net: a threshold, connected regions, a forest.

    python examples/regions.py

The background of a scene is one grey with a little noise, so that a pixel which differs from the
picture's median belongs to a shape.  A random forest tells the kind of shape by its outline.  Where
backgrounds are not plain, as in photographs, no threshold does this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scenes import NAMES, Box, scene

from sparknet.layers.detection_evaluate import mean_average_precision

GREY, LEAST, OUTLINE = 25, 12, 12
"""How far from the median the background goes, the pixels of a region, the side of an outline.

They were the best on a hundred of the scenes to learn from, of thresholds from 20 to 36.
"""
Region = tuple[tuple[slice, slice], Any]


def regions(picture: Any) -> list[Region]:
    """Where connected regions lie that are not background, and which pixels are theirs."""
    from scipy import ndimage

    apart = abs(picture.astype(float) - np.median(picture, (0, 1)))
    numbers, _ = ndimage.label((apart > GREY).any(2), np.ones((3, 3)))
    found = [(at, numbers[at] == one) for one, at in enumerate(ndimage.find_objects(numbers), 1)]
    return [(at, inside) for at, inside in found if inside.sum() >= LEAST]


def outline(inside: Any) -> Any:
    """A region's pixels in one size."""
    rows, columns = (np.arange(OUTLINE) * size // OUTLINE for size in inside.shape)
    return inside[np.ix_(rows, columns)].ravel()


class Finder:
    """Finds the shapes of pictures after it has learned from scenes of ``side`` pixels."""

    def __init__(self, numbers: Sequence[int], side: int, seed: int = 0) -> None:
        from sklearn.ensemble import RandomForestClassifier

        outlines, labels = [], []
        for number in numbers:
            picture, classes, _ = scene(np.random.default_rng(number), side)
            for at, inside in regions(picture):
                outlines.append(outline(inside))
                labels.append(np.bincount(classes[at][inside]).argmax())
        self.side = side
        self.forest = RandomForestClassifier(200, random_state=seed).fit(outlines, labels)

    def __call__(self, picture: Any) -> tuple[Any, list[tuple[int, float, Box]]]:
        """The class of each pixel; the label, the share of trees and the box of each shape."""
        classes, boxes = np.zeros((self.side, self.side), np.uint8), []
        found = regions(picture)
        shares = self.forest.predict_proba([outline(one) for _, one in found]) if found else []
        for (at, inside), share in zip(found, shares, strict=True):
            label = int(self.forest.classes_[np.argmax(share)])
            classes[at][inside] = label
            corners = at[1].start, at[0].start, at[1].stop, at[0].stop
            box = tuple(corner / self.side for corner in corners)
            boxes.append((label, float(max(share)), box))
        return classes, boxes


def mean_iou(finder: Finder, numbers: Sequence[int]) -> float:
    """Over the classes, the pixels that are rightly of a class among those that are or are told."""
    pairs = np.zeros((len(NAMES), len(NAMES)))
    for number in numbers:
        picture, classes, _ = scene(np.random.default_rng(number), finder.side)
        np.add.at(pairs, (classes, finder(picture)[0]), 1)
    right = np.diag(pairs)
    return float(np.mean(right / (pairs.sum(0) + pairs.sum(1) - right)))


def mean_precision(finder: Finder, numbers: Sequence[int]) -> float:
    """The mean average precision at an overlap of one half, as the net's is counted."""
    rows, real = [], np.zeros(len(NAMES))
    for number in numbers:
        picture, _, boxes = scene(np.random.default_rng(number), finder.side)
        left = [(int(label), box) for label, *box in boxes]
        for label, _ in left:
            real[label] += 1
        for label, share, box in sorted(finder(picture)[1], key=lambda one: -one[1]):
            near = [one for one in left if one[0] == label and overlap(one[1], box) >= 0.5]
            if near:
                left.remove(near[0])
            rows.append([number, label, share, bool(near), not near])
    heads = [[-1, label, count, 0, 0] for label, count in enumerate(real) if label]
    return mean_average_precision([np.array(heads + rows, float)])


def overlap(one: Sequence[float], other: Sequence[float]) -> float:
    """The intersection of two boxes over their union."""
    low, high = np.maximum(one[:2], other[:2]), np.minimum(one[2:], other[2:])
    shared = np.prod(np.maximum(high - low, 0))
    areas = [np.prod(np.subtract(box[2:], box[:2])) for box in (one, other)]
    return float(shared / (sum(areas) - shared))


if __name__ == "__main__":
    finder = Finder(range(1200), 64)
    print(f"mean IoU {mean_iou(finder, range(1200, 1400)):.1%}")
    finder = Finder(range(1200), 104)
    print(f"mean average precision {mean_precision(finder, range(1200, 1400)):.1%}")
