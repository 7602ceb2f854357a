"""DetectionData: pictures with labels of anchors (Cascade R-CNN: detection_data_layer.cpp)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from sparknet.caffe.host.batches import BatchHost
from sparknet.forks.cascade_rcnn.detection_data import DetectionData
from sparknet.forks.cascade_rcnn.readers.anchor_labels import CASCADE, PictureArea, label_maps
from sparknet.forks.cascade_rcnn.readers.boxed_pictures import (
    NO_BOX,
    Listed,
    Picture,
    Size,
    box_rows,
    by_short_side,
    load,
    planes,
    read_listed,
    to_32,
)
from sparknet.loaders.decoders import Decoders
from sparknet.loaders.distortion import distort
from sparknet.loaders.prefetch import Array, Arrays, Maker
from sparknet.loaders.window import rounded

NOISE = 10
"""Pixels by which a cut or a place may be off its middle."""
LARGE, ROOM = 1.5, 1.2
"""A picture that grows by more than LARGE is cut first, to ROOM times its size afterwards."""


class DetectionDataHost(BatchHost):
    def maker(self) -> Callable[[int], Maker[Arrays]]:
        layer = self.node.layer
        assert isinstance(layer, DetectionData)
        return partial(DetectionMaker, layer, self.node.plan.values, self.seed)


class DetectionMaker:
    """Item n is picture n of the window file, around it, in the order that `shuffle` asks for."""

    way = CASCADE
    no_box: Sequence[float] = NO_BOX

    def __init__(self, layer: DetectionData, values: Any, seed: int, first: int) -> None:
        self.options, self.values, self.seed = layer.settings, values, seed
        self.canvas = layer.both("crop_height", "crop_width")
        self.fixed = layer.both("resize_height", "resize_width")
        self.sides = layer.both("long_size", "short_size")
        self.crop_sides = layer.both("crop_long_size", "crop_short_size")
        self.listed = read_listed(values["source"], facts=layer.facts)
        self.turn = -1
        self.order: Any = ()
        self.decoders = Decoders()

    def make(self, number: int, spare: Arrays | None) -> list[Array]:
        size = self.values["batch_size"]
        rng = np.random.default_rng([self.seed, 0, number])
        ratios = self.options.template_ratio
        ratio = ratios[rng.integers(len(ratios))] if ratios else 1.0
        chosen = [self._listed(number * size + place) for place in range(size)]
        draws = [np.random.default_rng([self.seed, 1, number, item]) for item in range(size)]
        loaded = self.decoders.map(
            lambda pair: self._loaded(*pair, ratio), zip(chosen, draws, strict=True)
        )
        canvas = self._canvas(loaded[0].pixels.shape[:2], ratio)
        made = self.decoders.map(
            lambda three: self._placed(*three, canvas), zip(loaded, chosen, draws, strict=True)
        )
        images = np.stack([image for image, _, _ in made])
        maps = [
            np.stack(own).astype(np.float32) for own in zip(*(m for _, m, _ in made), strict=True)
        ]
        if not self.options.output_gt_boxes:
            return [images, *maps]
        return [
            images,
            *maps,
            box_rows([(one.boxes, one.facts) for _, _, one in made], self.no_box),
        ]

    def close(self) -> None:
        self.decoders.close()

    def _listed(self, item: int) -> Listed:
        turn, place = divmod(item, len(self.listed))
        if turn != self.turn:
            rng = np.random.default_rng([self.seed, 2, turn])
            how = self.options.shuffle if self.options.HasField("shuffle") else ""
            self.turn, self.order = turn, self._order(how, rng)
        return self.listed[int(self.order[place])]

    def _order(self, how: str, rng: np.random.Generator) -> Any:
        """random_aspect: high pictures and wide ones apart; random_mix_aspect: in turns."""
        places = np.arange(len(self.listed))
        if how in ("", "random"):
            return rng.permutation(places) if how else places
        wider = np.array([one.shape[2] > one.shape[1] for one in self.listed])
        parts = [rng.permutation(places[~wider]), rng.permutation(places[wider])]
        if rng.integers(2):
            parts.reverse()
        if how == "random_aspect":
            return np.concatenate(parts)
        return _in_turns(parts[0], parts[1], self.options.mix_group_size)

    def _loaded(self, one: Listed, rng: np.random.Generator, ratio: float) -> Picture:
        """Distorted, mirrored and resized."""
        picture = load(one, self.values["root_folder"])
        if self.options.HasField("distort_param"):
            picture.pixels = distort(picture.pixels, self.options.distort_param, rng)
        if self.values["mirror"] and rng.integers(2):
            picture.mirror()
        stored: Size = picture.pixels.shape[:2]
        picture.resize(self._size(stored, ratio), one.path)
        return picture

    def _size(self, stored: Size, ratio: float) -> Size:
        if self.fixed:
            return self.fixed
        if self.options.HasField("resize_ratio"):
            by = self.options.resize_ratio
            return rounded(stored[0] * by), rounded(stored[1] * by)
        if self.sides:
            return by_short_side(stored, max(to_32(self.sides[1] * ratio), 32))
        return stored

    def _canvas(self, first: Size, ratio: float) -> Size:
        """The size of all pictures of a batch, which the first may decide."""
        if self.canvas or (self.fixed and not self.crop_sides):
            return self.canvas or self.fixed or first
        sides = self.crop_sides or self.sides
        if not sides:
            return first
        long, short = sides
        if not self.crop_sides:
            long, short = (max(to_32(side * ratio), 32) for side in sides)
        return (long, short) if first[0] >= first[1] else (short, long)

    def _placed(
        self, picture: Picture, one: Listed, rng: np.random.Generator, canvas: Size
    ) -> tuple[Array, list[Array], Picture]:
        """The picture on its canvas, the labels of the anchors, and the boxes."""
        middle = self._rescaled(picture, rng, canvas, one.path)
        stored: Size = picture.pixels.shape[:2]
        (top, first), (left, column) = (
            _fitted(have, room, at, rng)
            for have, room, at in zip(stored, canvas, middle, strict=True)
        )
        high, wide = min(stored[0], canvas[0]), min(stored[1], canvas[1])
        picture.shift(top - first, left - column)
        part = picture.pixels[first : first + high, column : column + wide]
        image = np.zeros((3, *canvas), np.float32)
        values = planes(part, self.values["mean"], self.values["scale"])
        image[:, top : top + high, left : left + wide] = values
        self._ignore(picture, canvas)
        place = PictureArea(top, left, high, wide)
        return image, label_maps(picture, canvas, place, self.options, self.way), picture

    def _rescaled(
        self, picture: Picture, rng: np.random.Generator, canvas: Size, path: str
    ) -> Array:
        """Rescale a picture by chance; the row and column that a cut is to keep: the middle of one
        of the boxes, or any where there is none."""
        stored: Size = picture.pixels.shape[:2]
        if len(picture.boxes):
            box = picture.boxes[rng.integers(len(picture.boxes))]
            middle, sides = (box[1::-1] + box[:1:-1]) / 2, box[2:] - box[:2]
        else:
            free = [max(have - room, 0) for have, room in zip(stored, canvas, strict=True)]
            middle = np.array([rng.integers(more + 1) for more in free])
            middle = middle + np.minimum(stored, canvas) / 2
            sides = None
        factors = self._factors(sides, rng)
        if max(factors) > LARGE:
            middle = middle - _cut(picture, middle, factors)
        if factors != (1, 1):
            high, wide = picture.pixels.shape[:2]
            size = max(rounded(high * factors[0]), 1), max(rounded(wide * factors[1]), 1)
            picture.resize(size, path, factors)
        return np.asarray(middle * factors)

    def _factors(self, sides: Array | None, rng: np.random.Generator) -> tuple[float, float]:
        """By which height and width change; a box's width and height, where there is one."""
        options = self.options
        by_object = options.HasField("min_scale")
        if not by_object and not options.HasField("low_scale_ratio"):
            return 1, 1
        if rng.random() >= options.multiscale_prob:
            return 1, 1
        least, most = options.low_scale_ratio, options.high_scale_ratio
        if by_object:
            area = 0.0 if sides is None else float((sides + 1).prod())
            scales = (options.min_scale, options.max_scale)
            least, most = (scale / np.sqrt(area) if area > 0 else 2 for scale in scales)
        factor = 2 ** rng.uniform(np.log2(least), np.log2(most))
        aspect = 1.0
        if options.HasField("min_whaspect"):
            low, high = np.log2(options.min_whaspect), np.log2(options.max_whaspect)
            aspect = 2 ** rng.uniform(low, high)
        return float(factor / np.sqrt(aspect)), float(factor * np.sqrt(aspect))

    def _ignore(self, picture: Picture, canvas: Size) -> None:
        """Boxes whose centre is not on the canvas, and small ones, are ignored."""
        sizes = picture.boxes[:, 2:] - picture.boxes[:, :2] + 1
        centres = (picture.boxes[:, 2:] + picture.boxes[:, :2]) / 2
        away = (centres < 0) | (centres >= canvas[::-1])
        small = sizes < [self.options.min_gt_width, self.options.min_gt_height]
        picture.facts[(away | small).any(1), 1] = 1


def _in_turns(one: Array, two: Array, group: int) -> Array:
    """Groups of both by turns, then what is left of one."""
    found: list[Array] = []
    lists = [one, two]
    turn = 0
    while len(lists[0]) and len(lists[1]):
        found.append(lists[turn][:group])
        lists[turn] = lists[turn][group:]
        turn = 1 - turn
    return np.concatenate([*found, *lists])


def _cut(picture: Picture, middle: Array, factors: tuple[float, float]) -> Array:
    """Cut a picture that will grow much around a place; returns the first row and column."""
    stored = picture.pixels.shape[:2]
    size = [
        min(max(rounded(ROOM * have / by), 1), have)
        for have, by in zip(stored, factors, strict=True)
    ]
    first = [
        min(max(rounded(at - have / 2), 0), whole - have)
        for at, have, whole in zip(middle, size, stored, strict=True)
    ]
    part = slice(first[0], first[0] + size[0]), slice(first[1], first[1] + size[1])
    picture.pixels = picture.pixels[part]
    picture.shift(-first[0], -first[1])
    return np.array(first)


def _fitted(have: int, room: int, middle: float, rng: np.random.Generator) -> tuple[int, int]:
    """Where a side starts on the canvas, and at which of its pixels: near the middle both."""
    noise = int(rng.integers(-NOISE, NOISE))
    if have <= room:
        return min(max(rounded((room - have) / 2) + noise, 0), room - have), 0
    first = rounded(middle) + noise - rounded(room / 2)
    return 0, min(max(first, 0), have - room)
