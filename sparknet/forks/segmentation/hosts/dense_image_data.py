"""DenseImageData: batches of pictures and their labels (SegNet: dense_image_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost
from sparknet.errors import FileError
from sparknet.forks.segmentation.readers.labelled_pictures import Pair, load, read_pairs, transform
from sparknet.layers.layer import TRAIN
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.prefetch import Array, Arrays, Maker


class DenseImageDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        node = self.node
        return partial(
            PairMaker, node.plan.values, len(node.tops), node.layer.phase == TRAIN, self.seed
        )


class PairMaker:
    """Item n is line n of the list, counted from the one that rand_skip chose; with `shuffle` each
    round has its own order."""

    def __init__(self, values: Any, tops: int, train: bool, seed: int, first: int) -> None:
        self.values, self.tops, self.train, self.seed = values, tops, train, seed
        self.pairs = read_pairs(values["source"], values["label_type"] != "none")
        skip = values["rand_skip"]
        self.skip = int(np.random.default_rng([seed, 0]).integers(skip)) if skip else 0
        self.decoders = Decoders()

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        size = self.values["batch_size"]
        made = self.decoders.map(self._made, range(number * size, (number + 1) * size))
        shapes = {image.shape for image, _, _ in made}
        if len(shapes) > 1:
            raise FileError(self.values["source"], "holds pictures of several sizes: give a crop")
        images, labels, sizes = zip(*made, strict=True)
        data = np.ascontiguousarray(np.stack(images), np.float32)
        marks = np.ascontiguousarray(np.stack(labels)[:, None], np.float32)
        marks /= np.float32(self.values["divisor"])
        dims = np.array(sizes, np.float32).reshape(size, 1, 1, 2)
        return [data, marks, dims][: self.tops]

    def close(self) -> None:
        self.decoders.close()

    def _made(self, item: int) -> tuple[Array, Array, tuple[int, int]]:
        image, labels = load(self._pair(item), self.values)
        high, wide = image.shape[:2]
        crop = self.values["crop"] or (high, wide)
        rng = np.random.default_rng([self.seed, 1, item])
        pixels, marks = transform(image, labels, self.values, rng, self.train)
        return pixels, marks, (min(crop[0], high), min(crop[1], wide))

    def _pair(self, item: int) -> Pair:
        turn, place = divmod(self.skip + item, len(self.pairs))
        if not self.values["shuffle"]:
            return self.pairs[place]
        order = np.random.default_rng([self.seed, 2, turn]).permutation(len(self.pairs))
        return self.pairs[int(order[place])]
