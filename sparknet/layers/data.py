"""Data and ImageData: records of a LevelDB or LMDB, and images that a list names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.layers.host import BatchHost, transformation
from sparknet.layers.layer import Plan, Shape, between, exactly, layer
from sparknet.layers.source_layer import SourceLayer, TransformParam
from sparknet.loaders.batches import Array, Arrays, Maker, room
from sparknet.loaders.datums import Cursor, open_database, parse_datum, stored_shape
from sparknet.loaders.image_decoding import Decoders, decode, image_shape, read_list
from sparknet.loaders.transform import RandomSize
from sparknet.native.transform import ENCODED, BatchItems, RecordError, Transformation


class DataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        values = self.node.plan.values
        transform = transformation(values, self.node.layer.phase, self.seed)
        return partial(DataMaker, values, transform)


class DataMaker:
    def __init__(self, values: Mapping[str, Any], transform: Transformation, first: int) -> None:
        self.size: int = values["batch_size"]
        self.labels: bool = values["labels"]
        forced = values["force_color"] or values["force_gray"]
        self.color: bool | None = values["force_color"] if forced else None
        self.transform = transform
        self.random_size: RandomSize | None = values["random_size"]
        self.decoders = Decoders()
        shuffle = transform.seed if values["shuffle"] else None
        self.cursor = Cursor(values["source"], first * self.size, shuffle)

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        keys, records = self.cursor.take(self.size)
        self._decode(keys, records, number * self.size)
        shape = (self.size, *self.transform.shape(records.shape()))
        out = room([shape, (self.size,)] if self.labels else [shape], spare)
        try:
            self.transform.apply(out[0], records, number * self.size)
        except RecordError as error:
            raise self.cursor.blame(keys, error) from error
        if self.labels:
            out[1][:] = records.labels
        return out

    def _decode(self, keys: list[bytes], records: BatchItems, first: int) -> None:
        encoded = set(records.of_kind(ENCODED))

        def image(number: int) -> Any:
            name = f"{self.cursor.source}, record {keys[number]!r}"
            is_encoded = number in encoded
            planes: Any = decode(records.encoded(number), name, self.color) if is_encoded else None
            planes = records.values(number) if planes is None else planes
            if self.random_size is None:
                return planes
            if planes.dtype != np.uint8:
                raise FileError(name, "holds floats, which have no random size")
            rng = np.random.default_rng([self.transform.seed, first + number])
            return self.random_size.apply(planes, rng, name)

        changed = list(range(len(records))) if self.random_size else sorted(encoded)
        for number, values in zip(changed, self.decoders.map(image, changed), strict=True):
            records.put(number, values)

    def close(self) -> None:
        self.decoders.close()
        self.cursor.close()


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


@layer("Data", stock=True)
class Data(SourceLayer):
    """The first record gives the shape; a second top gives the labels (Caffe: data_layer.cpp).

    ``shuffle``, of several forks, gives each round an order of its own."""

    host = DataHost
    field = "data_param"
    fields = ("transform_param",)
    tops = between(1, 2)
    reads_files = has_batch_size = has_images = True
    plain_options = ("source", "shuffle")

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        transform = TransformParam(self, self.parameter.transform_param, sized=True)
        channels, height, width = transform.output(self._record_shape(transform))
        labels = len(self.parameter.top) > 1
        values = {"batch_size": batch, "labels": labels, **transform.values()}
        tops: tuple[Shape, ...] = ((batch, channels, height, width),)
        return Plan(tops=(*tops, (batch,)) if labels else tops, values=values)

    def data_set(self) -> Any:
        from sparknet.loaders.opening import open_records

        return open_records(self.options.source, kind="datums")

    def _record_shape(self, transform: TransformParam) -> tuple[int, int, int]:
        options = self.options
        with self.reading(f"the database '{options.source}'"):
            with open_database(options.source) as records:
                key, value = records.first()
            datum = parse_datum(value, options.source, key)
            if datum.encoded:
                transform.check_color()
            return stored_shape(datum, options.source, key, color=transform.color)


@layer("ImageData", stock=True)
class ImageData(SourceLayer):
    """The first image gives the shape (Caffe: image_data_layer.cpp)."""

    host = ImageDataHost
    field = "image_data_param"
    fields = ("transform_param",)
    tops = exactly(2)
    reads_files = has_batch_size = has_images = True
    plain_options = (
        "new_height",
        "new_width",
        "source",
        "root_folder",
        "shuffle",
        "rand_skip",
        "is_color",
    )

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        transform = TransformParam(self, self.parameter.transform_param, sized=True)
        channels, height, width = transform.output(self._image_shape())
        values = {
            "batch_size": batch,
            **transform.values(),
        }
        return Plan(tops=((batch, channels, height, width), (batch,)), values=values)

    def data_set(self) -> Any:
        from sparknet.loaders.opening import open_records

        options = self.options
        how = {"size": self.new_size(options), "color": options.is_color}
        return open_records(options.source, options.root_folder, kind="images", **how)

    def _image_shape(self) -> tuple[int, int, int]:
        options = self.options
        size = self.new_size(options)
        channels = 3 if options.is_color else 1
        with self.reading(f"the image list '{options.source}'"):
            name, _ = next(iter(read_list(options.source)), (None, 0))
        if name is None:
            self.fail(f"the image list '{options.source}' holds no image")
        with self.reading("the first image"):
            _, height, width = image_shape(options.root_folder + name)
        return (channels, *size) if size else (channels, height, width)
