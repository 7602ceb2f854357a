"""Images with a label for each pixel: sources of DeepLab, SegNet, HED and PSPNet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from sparknet.errors import FileError
from sparknet.layers.host import BatchHost
from sparknet.layers.labelled_pictures import Pair, load, read_pairs, strided, transform
from sparknet.layers.layer import TRAIN, Plan, Shape, between, exactly, layer
from sparknet.layers.source_layer import SourceLayer
from sparknet.loaders.batches import Array, Arrays, Maker
from sparknet.loaders.image_decoding import Decoders, image_shape
from sparknet.loaders.transform import mean_image
from sparknet.proto.untrusted import check_trusted


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
        items = self.decoders.map(self._item, range(number * size, (number + 1) * size))
        shapes = {image.shape for image, _, _ in items}
        if len(shapes) > 1:
            raise FileError(self.values["source"], "holds pictures of several sizes: give a crop")
        images, labels, sizes = zip(*items, strict=True)
        data = np.ascontiguousarray(np.stack(images), np.float32)
        marks = np.ascontiguousarray(np.stack(labels)[:, None], np.float32)
        marks /= np.float32(self.values["divisor"])
        dims = np.array(sizes, np.float32).reshape(size, 1, 1, 2)
        return [data, marks, dims][: self.tops]

    def close(self) -> None:
        self.decoders.close()

    def _item(self, item: int) -> tuple[Array, Array, tuple[int, int]]:
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


DRAWS, SHARE = 10, 0.8


class StridedMaker(PairMaker):
    def _item(self, item: int) -> tuple[Array, Array, tuple[int, int]]:
        image, labels = load(self._pair(item), self.values)
        rng = np.random.default_rng([self.seed, 1, item])
        for _ in range(DRAWS if self.values["balance"] else 1):
            pixels, marks = strided(image, labels, self.values, rng)
            if np.bincount(marks.ravel()).max() <= SHARE * marks.size:
                break
        return pixels, marks, (pixels.shape[1], pixels.shape[2])


class PairHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        node = self.node
        kind = StridedMaker if "stride" in node.plan.values else PairMaker
        return partial(kind, node.plan.values, len(node.tops), node.layer.phase == TRAIN, self.seed)


class PairLayer(SourceLayer):
    """A layer whose list has lines `picture labels`."""

    host = PairHost
    fields: ClassVar[tuple[str, ...]] = ("transform_param",)
    tops = exactly(2)
    reads_files = True
    defaults: ClassVar[dict[str, Any]] = {
        "scale_factors": (),
        "label_type": "pixel",
        "ignore_label": 0,
        "divisor": 1,
    }
    """Values that most of these layers have in common."""


@layer("DenseImageData")
class DenseImageData(PairLayer):
    """dense_image_data_layer.cpp of SegNet and ENet; a line of the list is `picture labels`.

    Top 1 is N x 1 x H x W.  Crops are random in TRAIN and central in TEST; label_divide_factor
    divides the labels."""

    field = "dense_image_data_param"
    fields = ()
    has_batch_size = True
    plain_options = ("source", "root_folder", "shuffle", "rand_skip", "is_color", "mirror")

    def survey(self) -> Plan:
        options = self.options
        batch = self.batch(options.batch_size)
        size, crop = self._pair("new_height", "new_width"), self._pair("crop_height", "crop_width")
        channels, *stored = picture_shape(self, options)
        high, wide = crop or size or stored
        if crop and any(c > s for c, s in zip(crop, size or stored, strict=True)):
            self.fail(f"the crop {high} x {wide} is larger than the pictures")
        values = {
            **self.defaults,
            "batch_size": batch,
            "size": size,
            "crop": crop,
            "scale": 1.0,
            "mean": mean_of(self, options.mean_file) if options.HasField("mean_file") else None,
            "divisor": options.label_divide_factor,
        }
        tops: tuple[Shape, ...] = ((batch, channels, high, wide), (batch, 1, high, wide))
        return Plan(tops=tops, values=values)

    def _pair(self, high: str, wide: str) -> tuple[int, int] | None:
        size = (getattr(self.options, high), getattr(self.options, wide))
        if any(size) and not all(size):
            self.fail(f"needs {high} and {wide} together; they are {size[0]} and {size[1]}")
        return size if all(size) else None


def picture_shape(layer: SourceLayer, options: Any, two: bool = True) -> tuple[int, int, int]:
    """Channels, height and width of the first picture of a list."""
    with layer.reading(f"the list '{options.source}'"):
        pairs = read_pairs(options.source, two)
    with layer.reading("the first picture"):
        _, high, wide = image_shape(options.root_folder + pairs[0][0])
    return (3 if options.is_color else 1), high, wide


def mean_of(layer: SourceLayer, path: str) -> Any:
    """Return the mean of a file, height x width x channels."""
    check_trusted(layer.parameter, "to read the mean file")
    try:
        return mean_image(path).transpose(1, 2, 0)
    except OSError as error:
        layer.fail(f"the mean file cannot be read: {error}")


@layer("SegData")
class SegData(PairLayer):
    """seg_data_layer.cpp of yjxiong/caffe; a line of the list is `picture labels`.

    Batches of one picture, scaled by a number between the two scale_ratios, of which a part of any
    place is taken whose sides are multiples of `stride`, at most upper_size, or upper_height and
    upper_width.  With `balance` a part of which one label has more than four fifths is drawn
    again, up to ten times."""

    field = "seg_data_param"
    plain_options = ("source", "shuffle", "balance")

    def survey(self) -> Plan:
        options, transform = self.options, self.parameter.transform_param
        scales = tuple(transform.scale_ratios) if len(transform.scale_ratios) == 2 else (1, 1)
        if transform.stride < 1 or not 0 < scales[0] <= scales[1] < float("inf"):
            self.fail("needs a positive stride, and scale_ratios that are positive and in order")
        with self.reading(f"the list '{options.source}'"):
            pairs = read_pairs(options.source)
        with self.reading("the first picture"):
            _, *stored = image_shape(options.root_dir + pairs[0][0])
        most = None
        if transform.HasField("upper_size"):
            most = (transform.upper_size,) * 2
        elif transform.HasField("upper_height") and transform.HasField("upper_width"):
            most = (transform.upper_height, transform.upper_width)
        if most and min(most) < 1:
            self.fail(f"the upper sizes must be positive; they are {most[0]} and {most[1]}")
        high, wide = (side // transform.stride * transform.stride for side in stored)
        if most:
            high, wide = min(high, most[0]), min(wide, most[1])
        values = {
            **self.defaults,
            "root_folder": options.root_dir,
            "batch_size": 1,
            "rand_skip": 0,
            "size": None,
            "is_color": True,
            "mirror": transform.mirror,
            "scale": transform.scale,
            "mean": means(self, 3),
            "stride": transform.stride,
            "scales": scales,
            "most": most,
        }
        return Plan(((1, 3, high, wide), (1, 1, high, wide)), values=values)


@layer("ImageSegData")
class ImageSegData(PairLayer):
    """image_seg_data_layer.cpp of DeepLab; a line of the list is `picture labels`.

    label_type PIXEL takes a picture of labels, IMAGE one number for all pixels, NONE ignore_label.
    A picture smaller than the crop is filled up with mean_value, its labels with ignore_label;
    ``scale_factors`` of transform_param resize it by chance.  Top 2 has the height and the width
    of each picture within the crop."""

    field = "image_data_param"
    tops = between(2, 3)
    has_batch_size = True
    plain_options = ("source", "root_folder", "shuffle", "rand_skip", "is_color")

    def survey(self) -> Plan:
        options, transform = self.options, self.parameter.transform_param
        batch = self.batch(options.batch_size)
        crop = (
            transform.crop_height or transform.crop_size,
            transform.crop_width or transform.crop_size,
        )
        if not all(crop):
            self.fail("needs crop_size, or crop_height and crop_width, in transform_param")
        size = self.new_size(options)
        kind = self.choice("label_type") if options.has_label else "none"
        channels = picture_shape(self, options, two=kind != "none")[0]
        values = {
            **self.defaults,
            "batch_size": batch,
            "size": size,
            "crop": crop,
            "mirror": transform.mirror,
            "scale": transform.scale,
            "scale_factors": tuple(transform.scale_factors),
            "mean": means(self, channels),
            "label_type": kind,
            "ignore_label": options.ignore_label,
        }
        tops: tuple[Shape, ...] = ((batch, channels, *crop), (batch, 1, *crop))
        if len(self.parameter.top) > 2:
            tops += ((batch, 1, 1, 2),)
        return Plan(tops=tops, values=values)


@layer("ImageLabelmapData")
class ImageLabelmapData(PairLayer):
    """image_labelmap_data_layer.cpp of HED; a line of the list is `picture map`.

    Top 1 is N x 1 x H x W: 1 where the map is brighter than half, 0 elsewhere."""

    field = "image_data_param"
    has_batch_size = True
    plain_options = ("source", "root_folder", "shuffle", "rand_skip", "is_color")

    def survey(self) -> Plan:
        options, transform = self.options, self.parameter.transform_param
        batch = self.batch(options.batch_size)
        size = self.new_size(options)
        channels, *stored = picture_shape(self, options)
        crop = (transform.crop_size,) * 2 if transform.crop_size else None
        high, wide = crop or size or stored
        if crop and min(size or stored) < crop[0]:
            self.fail(f"crop_size {crop[0]} is larger than the pictures")
        values = {
            **self.defaults,
            "batch_size": batch,
            "size": size,
            "crop": crop,
            "mirror": transform.mirror,
            "scale": transform.scale,
            "mean": means(self, channels),
            "label_way": "cv2.linear",
            "halves": True,
        }
        return Plan(((batch, channels, high, wide), (batch, 1, high, wide)), values=values)


def means(layer: SourceLayer, channels: int) -> object:
    """Return the mean of transform_param, height x width x channels; None where there is none."""
    transform = layer.parameter.transform_param
    if transform.HasField("mean_file"):
        return mean_of(layer, transform.mean_file)
    if len(transform.mean_value) not in (0, 1, channels):
        layer.fail(
            f"needs one mean_value or one for each of the {channels} channels; "
            f"there are {len(transform.mean_value)}"
        )
    if not transform.mean_value:
        return None
    return np.array(transform.mean_value, np.float32).reshape(1, 1, -1)
