"""ImageGtData: pictures with labels of anchors (MS-CNN: image_gt_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost
from sparknet.forks.cascade_rcnn.hosts.detection_data import DetectionMaker
from sparknet.forks.cascade_rcnn.image_gt_data import STEP, ImageGtData
from sparknet.forks.cascade_rcnn.readers.anchor_labels import MSCNN
from sparknet.loaders.prefetch import Array, Arrays, Maker
from sparknet.loaders.window import rounded


class ImageGtDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        layer = self.node.layer
        assert isinstance(layer, ImageGtData)
        return partial(ImageGtMaker, layer, self.node.plan.values, self.seed)


class ImageGtMaker(DetectionMaker):
    """The way of DetectionData; pictures are rescaled by half octaves."""

    way = MSCNN
    no_box = (0, 1, 1, 2, 2, 1, 1)

    def __init__(self, layer: ImageGtData, values: Any, seed: int, first: int) -> None:
        super().__init__(layer, values, seed, first)
        self.own, self.layer = layer.options, layer
        times = self.own.fg_img_multiple
        self.listed = [
            one for one in self.listed for _ in range(times if (one.facts[:, 1] == 0).any() else 1)
        ]

    def _factors(self, sides: Array | None, rng: np.random.Generator) -> tuple[float, float]:
        if not self.layer.multiplies() or sides is None or min(sides) <= 0 or not rng.integers(2):
            return 1, 1
        least, most = self.own.min_scale, self.own.max_scale
        scales = np.arange(rounded(2 * np.log2(most / least) + 1)) / 2
        ratios = np.log2(sides.prod()) - 2 * (np.log2(least) + scales)
        factor = float(2 ** (rng.choice(scales) - scales[np.abs(ratios).argmin()]))
        if not self.layer.shapes() or not rng.integers(2):
            return factor, factor
        steps = rounded((self.own.max_whaspect - self.own.min_whaspect) / STEP)
        by = (rng.integers(steps) * STEP + self.own.min_whaspect) * sides[1] / sides[0]
        factors = [factor, factor]
        axis = int(rng.integers(2))
        changed = factor * by if axis else factor / by
        if 0.8 * least <= sides[1 - axis] * changed <= 1.2 * most:
            factors[axis] = float(changed)
        return factors[0], factors[1]
