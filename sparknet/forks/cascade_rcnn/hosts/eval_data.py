"""EvalData: pictures with boxes in their order (Cascade R-CNN: eval_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost
from sparknet.forks.cascade_rcnn.eval_data import EvalData
from sparknet.forks.cascade_rcnn.readers.boxed_pictures import (
    Size,
    box_rows,
    by_short_side,
    load,
    planes,
    read_listed,
    to_32,
)
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.prefetch import Array, Arrays, Maker


class EvalDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        layer = self.node.layer
        assert isinstance(layer, EvalData)
        return partial(EvalMaker, layer, self.node.plan.values, len(self.node.tops))


class EvalMaker:
    """Item n is picture n of the window file, around it."""

    def __init__(self, layer: EvalData, values: Any, tops: int, first: int) -> None:
        self.values, self.tops = values, tops
        self.fixed = layer.both("resize_height", "resize_width")
        self.sides = layer.both("long_size", "short_size")
        self.listed = read_listed(values["source"])
        self.decoders = Decoders()

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        size = self.values["batch_size"]
        made = self.decoders.map(self._made, range(number * size, (number + 1) * size))
        images = np.stack([image for image, _, _ in made])
        sizes = np.array([image.shape[1:] for image, _, _ in made], np.float32)
        rows = box_rows([(boxes, facts) for _, boxes, facts in made])
        return [images, rows, sizes.reshape(size, 2, 1, 1)][: self.tops]

    def close(self) -> None:
        self.decoders.close()

    def _made(self, item: int) -> tuple[Array, Array, Array]:
        one = self.listed[item % len(self.listed)]
        picture = load(one, self.values["root_folder"])
        high, wide = self._size(picture.pixels.shape[:2])
        picture.resize((max(to_32(high), 32), max(to_32(wide), 32)), one.path)
        pixels = planes(picture.pixels, self.values["mean"], self.values["scale"])
        return pixels, picture.boxes, picture.facts

    def _size(self, stored: Size) -> Size:
        if self.fixed:
            return self.fixed
        if not self.sides:
            return stored
        longest, short = self.sides
        high, wide = by_short_side(stored, short)
        return min(high, longest), min(wide, longest)
