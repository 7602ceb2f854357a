"""ImageData: batches from a list of image files (Caffe: image_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost, transformation
from sparknet.errors import FileError
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.image import decode, read_list
from sparknet.loaders.prefetch import Array, Arrays, Maker, room
from sparknet.native.batch_items import BatchItems, RecordError, Transformation


class ImageDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        values = self.node.plan.values
        transform = transformation(values, self.node.layer.phase, self.seed)
        return partial(ImageMaker, values, transform)


class ImageMaker:
    """Item n of the data is image n of the list, counted from the one that rand_skip chose.  The
    list repeats; with `shuffle` each round has its own order."""

    def __init__(self, values: Mapping[str, Any], transform: Transformation, first: int) -> None:
        self.values, self.transform = values, transform
        self.size: int = values["batch_size"]
        self.images = list(read_list(values["source"]))
        if not self.images:
            raise FileError(values["source"], "holds no image")
        self.skip = self._skip()
        self.round, self.order = -1, np.zeros(0, np.int64)
        self.decoders = Decoders()
        new = values["new_height"], values["new_width"]
        self.resize = new if new[0] else None

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        first = number * self.size
        images = [self._image(first + i) for i in range(self.size)]
        records = BatchItems(self.size)
        for place, pixels in enumerate(self.decoders.map(self._decode, enumerate(images, first))):
            records.put(place, pixels)
        shape = (self.size, *self.transform.shape(records.shape()))
        out = room([shape, (self.size,)], spare)
        try:
            self.transform.apply(out[0], records, number * self.size)
        except RecordError as error:
            raise FileError(self._path(images[error.number]), str(error)) from error
        out[1][:] = [label for _, label in images]
        return out

    def close(self) -> None:
        self.decoders.close()

    def _skip(self) -> int:
        bound = self.values["rand_skip"]
        skip = int(np.random.default_rng([self.transform.seed, 0]).integers(bound)) if bound else 0
        if skip >= len(self.images):
            raise FileError(self.values["source"], f"holds {len(self.images)} images, not {skip}")
        return skip

    def _image(self, item: int) -> tuple[str, int]:
        turn, place = divmod(self.skip + item, len(self.images))
        if not self.values["shuffle"]:
            return self.images[place]
        if turn != self.round:
            rng = np.random.default_rng([self.transform.seed, 1 + turn])
            self.round, self.order = turn, rng.permutation(len(self.images))
        return self.images[int(self.order[place])]

    def _path(self, image: tuple[str, int]) -> str:
        return str(self.values["root_folder"] + image[0])

    def _decode(self, numbered: tuple[int, tuple[str, int]]) -> Any:
        item, image = numbered
        path = self._path(image)
        planes = decode(path, path, bool(self.values["is_color"]), self.resize)
        random_size = self.values["random_size"]
        if random_size is None:
            return planes
        return random_size.apply(planes, np.random.default_rng([self.transform.seed, item]), path)
