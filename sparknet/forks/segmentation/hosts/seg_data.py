"""SegData: one picture after the other with its labels (yjxiong/caffe: seg_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sparknet.caffe.host.batches import BatchHost
from sparknet.forks.segmentation.hosts.dense_image_data import PairMaker
from sparknet.forks.segmentation.readers.labelled_pictures import load, strided
from sparknet.layers.layer import TRAIN
from sparknet.loaders.prefetch import Array, Arrays, Maker

DRAWS, SHARE = 10, 0.8


class SegDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        node = self.node
        train = node.layer.phase == TRAIN
        return partial(StridedMaker, node.plan.values, len(node.tops), train, self.seed)


class StridedMaker(PairMaker):
    def _made(self, item: int) -> tuple[Array, Array, tuple[int, int]]:
        image, labels = load(self._pair(item), self.values)
        rng = np.random.default_rng([self.seed, 1, item])
        for _ in range(DRAWS if self.values["balance"] else 1):
            pixels, marks = strided(image, labels, self.values, rng)
            if np.bincount(marks.ravel()).max() <= SHARE * marks.size:
                break
        return pixels, marks, (pixels.shape[1], pixels.shape[2])
