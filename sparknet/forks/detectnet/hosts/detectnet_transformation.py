"""DetectNetTransformation: pictures changed by chance, boxes as maps (NVIDIA's Caffe:
detectnet_transform_layer.cpp, detectnet_coverage_rectangular.cpp)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparknet.caffe.blob import Blob
from sparknet.caffe.host.host import DrawingHost
from sparknet.errors import LayerError
from sparknet.forks.detectnet.readers.turning import bounds, turned, turning
from sparknet.loaders.resize import resize

Array = np.ndarray[Any, Any]
TINY = float(np.finfo(np.float32).eps)


@dataclass
class Change:
    """What happens to a picture: sizes are (height, width), the offset (down, right)."""

    size: tuple[int, int]
    hue: float = 0.0
    saturation: float = 1.0
    flip: bool = False
    degrees: float = 0.0
    offset: tuple[int, int] = (0, 0)


class DetectNetTransformationHost(DrawingHost):
    def forward(self, bottoms: Sequence[Blob], tops: Sequence[Blob]) -> None:
        values = self.node.plan.values
        for image, pixels in enumerate(bottoms[0].data):
            boxes = self._boxes(bottoms[1].data[image, 0], image)
            change = chosen(pixels.shape[1:], values, self.rng)
            tops[0].data[image] = changed(pixels, change, values)
            tops[1].data[image] = grid_maps(moved(boxes, pixels.shape[1:], change), values)

    def _boxes(self, rows: Array, image: int) -> Array:
        """Rows of x, y, width, height and class."""
        many, width = rows[0, :2]
        if not (0 <= many <= len(rows) - 1 and width == rows.shape[1]):
            raise LayerError(
                self.node.name,
                f"DetectNetTransformation: the labels of image {image} begin with {many:g} and "
                f"{width:g}; they are the number of boxes, at most {len(rows) - 1}, and "
                f"{rows.shape[1]}",
            )
        return np.asarray(rows[1 : 1 + int(many)][:, [0, 1, 2, 3, 5]].astype(np.float64))


def chosen(size: tuple[int, int], values: Mapping[str, Any], rng: np.random.Generator) -> Change:
    wanted = (values["image_size_y"], values["image_size_x"])
    if not values["train"]:
        return Change(wanted)
    change = Change(size)
    if rng.random() <= values["hue_rotation_prob"]:
        most = values["hue_rotation"]
        change.hue = float(np.clip(rng.uniform(-most, most), -180, 180))
    if rng.random() <= values["desaturation_prob"]:
        change.saturation = 1 - rng.random() * values["desaturation_max"]
    change.flip = bool(rng.random() <= values["flip_prob"])
    if rng.random() <= values["scale_prob"]:
        by = rng.uniform(values["scale_min"], values["scale_max"])
        change.size = (max(round(size[0] * by), 1), max(round(size[1] * by), 1))
    if rng.random() <= values["rotation_prob"]:
        most = values["max_rotate_degree"]
        change.degrees = float(rng.uniform(-most, most))
    whole = bounds(change.size, change.degrees)[1] if change.degrees else change.size
    places, shifts = (0.5, 0.5), (0, 0)
    if rng.random() <= values["crop_prob"]:
        places, shifts = (rng.random(), rng.random()), (values["shift_y"], values["shift_x"])
    down, right = (
        round(place * (have - room + shift) - shift // 2)
        for place, have, room, shift in zip(places, whole, wanted, shifts, strict=True)
    )
    change.offset = (down, right)
    return change


def changed(pixels: Array, change: Change, values: Mapping[str, Any]) -> Array:
    """A picture 3 x H x W; what lies outside it is the mean."""
    image = np.ascontiguousarray(pixels.transpose(1, 2, 0))
    if change.hue or change.saturation != 1:
        image = recoloured(image, change.hue, change.saturation)
    if values["mean"]:
        image = image - np.array(values["mean"], np.float32)
    if change.flip:
        image = image[:, ::-1]
    image = resize(np.ascontiguousarray(image, np.float32), change.size, "cv2.cubic")
    if change.degrees:
        image = turned(image, change.degrees)
    high, wide = values["image_size_y"], values["image_size_x"]
    found = np.zeros((high, wide, 3), np.float32)
    down, right = change.offset
    part = image[max(down, 0) : max(down + high, 0), max(right, 0) : max(right + wide, 0)]
    top, left = max(-down, 0), max(-right, 0)
    part = part[: max(high - top, 0), : max(wide - left, 0)]
    found[top : top + part.shape[0], left : left + part.shape[1]] = part
    return np.asarray(found.transpose(2, 0, 1))


def recoloured(image: Array, hue: float, saturation: float) -> Array:
    """Of a blue, green and red image: hue turned by degrees, saturation times a factor."""
    blue, green, red = np.moveaxis(image.astype(np.float64), -1, 0)
    value = image.max(-1).astype(np.float64)
    spread = value - image.min(-1)
    safe = np.where(spread > 0, spread, 1)
    angle = np.where(
        value == red,
        (green - blue) / safe,
        np.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    angle = np.where(spread > 0, angle, 0) + hue / 60
    width = spread * saturation

    def channel(shift: float) -> Array:
        place = (shift + angle) % 6
        return np.asarray(value - width * np.clip(np.minimum(place, 4 - place), 0, 1))

    return np.stack([channel(1), channel(3), channel(5)], -1).astype(np.float32)


def moved(boxes: Array, size: tuple[int, int], change: Change) -> Array:
    """The boxes where the picture's change leaves them; rotation keeps their sizes."""
    found = boxes.copy()
    if change.flip:
        found[:, 0] = size[1] - boxes[:, 0] - boxes[:, 2]
    by = np.array([change.size[1] / size[1], change.size[0] / size[0]])
    found[:, :4] *= np.tile(by, 2)
    if change.degrees:
        matrix = turning(change.size, change.degrees)
        centres = found[:, :2] + found[:, 2:4] / 2
        found[:, :2] = centres @ matrix[:, :2].T + matrix[:, 2] - found[:, 2:4] / 2
    found[:, :2] -= change.offset[::-1]
    return np.asarray(found)


def grid_maps(boxes: Array, values: Mapping[str, Any]) -> Array:
    stride, classes = values["stride"], dict(values["object_class"])
    sides = np.array([values["image_size_x"], values["image_size_y"]])
    wide, high = (sides // stride).tolist()
    found = np.zeros((8 + values["classes"], high, wide), np.float32)
    y, x = np.mgrid[:high, :wide] * stride
    for *corner, width, height, number in boxes:
        box = np.array([corner[0], corner[1], corner[0] + width, corner[1] + height])
        if values["crop_bboxes"]:
            box = np.clip(box, 0, np.tile(sides, 2))
        size = box[2:] - box[:2]
        if int(number) not in classes or not (size > 0).all() or size.prod() < TINY:
            continue
        low, top = covering(box, values)
        common = np.minimum(x + stride, top[0]) - np.maximum(x, low[0])
        common = np.maximum(common, 0)
        common = common * np.maximum(np.minimum(y + stride, top[1]) - np.maximum(y, low[1]), 0)
        taken = common / stride**2 > TINY
        norm = stride**2 / max(float((top - low).prod()), TINY)
        own = [box[0] - x, box[1] - y, box[2] - x, box[3] - y]
        found[8:, taken] = 0
        found[8 + classes[int(number)], taken] = 1
        found[0, taken] = 1
        found[1:5, taken] = np.stack(own)[:, taken]
        found[5, taken], found[6, taken] = 1 / size
        found[7, taken] = max(0.0 if values["obj_norm"] else 1.0, norm)
    return found


def covering(box: Array, values: Mapping[str, Any]) -> tuple[Array, Array]:
    """The part of a box, around its middle, that places of the grid are to see."""
    middle, size = (box[:2] + box[2:]) / 2, box[2:] - box[:2]
    part = size * values["scale_cvg"]
    if values["gridbox_type"] == "gridbox_min":
        part = np.minimum(size, np.maximum(values["min_cvg_len"], part))
    else:
        part = np.minimum(values["max_cvg_len"], part)
    return middle - part / 2, middle + part / 2
