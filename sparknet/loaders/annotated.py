"""Annotated images: boxes that move with the image through SSD's samplers and transforms.

SSD's Caffe: annotated_data_layer.cpp, data_transformer.cpp, sampler.cpp, im_transforms.cpp and
bbox_util.cpp.  Boxes are rows of xmin, ymin, xmax, ymax in shares of the image.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.augmentation import add_noise, distort
from sparknet.loaders.resize import resize
from sparknet.proto import caffe_pb2

Array = np.ndarray[Any, Any]
Box = tuple[float, float, float, float]
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)

_RESIZE = caffe_pb2.ResizeParameter
WAYS = {
    _RESIZE.LINEAR: "cv2.linear",
    _RESIZE.AREA: "cv2.area",
    _RESIZE.NEAREST: "cv2.nearest",
    _RESIZE.CUBIC: "cv2.cubic",
    _RESIZE.LANCZOS4: "cv2.lanczos4",
}
PADS = {_RESIZE.CONSTANT: "constant", _RESIZE.MIRRORED: "reflect", _RESIZE.REPEAT_NEAREST: "edge"}
LARGEST = 1 << 28
"""Pixels that an expanded image may have."""


@dataclass(frozen=True)
class Annotated:
    """An image of height x width x channels bytes, and its boxes with a row of facts each."""

    image: Array
    boxes: Array
    """N x 4."""
    facts: Array
    """N x 3: group label, instance, whether it is difficult."""

    def within(self, part: Box, emits: caffe_pb2.EmitConstraint | None = None) -> Annotated:
        """Return the boxes as shares of a part of the image; those outside it are gone."""
        left, top, right, bottom = part
        size = np.array([right - left, bottom - top] * 2, np.float32)
        keep = np.ones(len(self.boxes), bool) if emits is None else emitted(part, self.boxes, emits)
        moved = (self.boxes - np.array([left, top] * 2, np.float32)) / size
        touches = (moved[:, :2] < 1).all(1) & (moved[:, 2:] > 0).all(1)
        moved = np.clip(moved, 0, 1)
        keep &= touches & (moved[:, 2:] > moved[:, :2]).all(1)
        return replace(self, boxes=moved[keep], facts=self.facts[keep])


def boxes_of(datum: Any) -> tuple[Array, Array]:
    """Return the boxes and facts of an AnnotatedDatum."""
    boxes, facts = [], []
    for group in datum.annotation_group:
        for one in group.annotation:
            box = one.bbox
            boxes.append((box.xmin, box.ymin, box.xmax, box.ymax))
            facts.append((group.group_label, one.instance_id, box.difficult))
    shape = (len(boxes), -1) if boxes else (0, 0)
    corners = np.array(boxes, np.float32).reshape(shape) if boxes else np.zeros((0, 4), np.float32)
    details = np.array(facts, np.float32).reshape(shape) if facts else np.zeros((0, 3), np.float32)
    return corners, details


# -- measures --------------------------------------------------------------------------------


def areas(boxes: Array) -> Array:
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    product: Array = sides[:, 0] * sides[:, 1]
    return product


def shared(box: Box, boxes: Array) -> Array:
    """Return the area that each box has in common with one box."""
    one = np.array(box, np.float32)
    low, high = np.maximum(boxes[:, :2], one[:2]), np.minimum(boxes[:, 2:], one[2:])
    return areas(np.concatenate([low, high], 1))


def _share(part: Any, whole: Any) -> Any:
    return np.divide(part, whole, out=np.zeros_like(part), where=np.asarray(whole) > 0)


def emitted(part: Box, boxes: Array, how: caffe_pb2.EmitConstraint) -> Array:
    """Which boxes belong to a part of the image: by their centres, or by their share in it."""
    if how.emit_type == caffe_pb2.EmitConstraint.MIN_OVERLAP:
        return np.asarray(_share(shared(part, boxes), areas(boxes)) > how.emit_overlap)
    centres = (boxes[:, :2] + boxes[:, 2:]) / 2
    return np.asarray(((centres >= part[:2]) & (centres <= part[2:])).all(1))


# -- samplers --------------------------------------------------------------------------------


def samples(
    samplers: Sequence[caffe_pb2.BatchSampler], boxes: Array, rng: np.random.Generator
) -> list[Box]:
    """Parts of the image that meet the samplers' constraints."""
    parts: list[Box] = []
    for sampler in samplers:
        many = 0
        for _ in range(sampler.max_trials if sampler.use_original_image else 0):
            if sampler.HasField("max_sample") and many >= sampler.max_sample:
                break
            part = _sample(sampler.sampler, rng)
            if _meets(part, boxes, sampler.sample_constraint):
                many += 1
                parts.append(part)
    return parts


def _sample(sampler: caffe_pb2.Sampler, rng: np.random.Generator) -> Box:
    scale = rng.uniform(sampler.min_scale, sampler.max_scale)
    aspect = rng.uniform(sampler.min_aspect_ratio, sampler.max_aspect_ratio)
    aspect = min(max(aspect, scale**2), 1 / scale**2)
    wide, high = scale * math.sqrt(aspect), scale / math.sqrt(aspect)
    left, top = rng.uniform(0, max(1 - wide, 0)), rng.uniform(0, max(1 - high, 0))
    return left, top, left + wide, top + high


def _meets(part: Box, boxes: Array, constraint: caffe_pb2.SampleConstraint) -> bool:
    """Return whether one object meets the first kind of bound that holds."""
    common = shared(part, boxes)
    own, theirs = np.float32((part[2] - part[0]) * (part[3] - part[1])), areas(boxes)
    measured = {
        "jaccard_overlap": _share(common, own + theirs - common),
        "sample_coverage": _share(common, np.full_like(common, own)),
        "object_coverage": _share(common, theirs),
    }
    measures = {
        name: values
        for name, values in measured.items()
        if constraint.HasField(f"min_{name}") or constraint.HasField(f"max_{name}")
    }
    if not measures:
        return True
    passes = np.ones(len(boxes), bool)
    for name, values in measures.items():
        if constraint.HasField(f"min_{name}"):
            passes &= values >= getattr(constraint, f"min_{name}")
        if constraint.HasField(f"max_{name}"):
            passes &= values <= getattr(constraint, f"max_{name}")
    return bool(passes.any())


# -- the way of one image --------------------------------------------------------------------


def prepare(
    one: Annotated,
    transform: caffe_pb2.TransformationParameter,
    samplers: Sequence[caffe_pb2.BatchSampler],
    rng: np.random.Generator,
    train: bool,
    jitter: float = 0.0,
) -> Annotated:
    """Distort, expand, sample, resize, add noise, crop and mirror, in SSD's order."""
    if transform.HasField("distort_param"):
        one = replace(one, image=distort(one.image, transform.distort_param, rng))
    if transform.HasField("expand_param"):
        one = _expand(one, transform, rng)
    if samplers or jitter:
        # As in MobileNet-YOLO a jittered part takes the place of the samplers'.
        parts = [jittered(jitter, rng)] if jitter else samples(samplers, one.boxes, rng)
        if parts:
            one = _crop_boxes(one, parts[rng.integers(len(parts))], transform)
    if transform.HasField("resize_param"):
        ways = [transform.resize_param, *transform.further_resize_param]
        one = _resize(one, ways[rng.integers(len(ways))], rng)
    if transform.HasField("noise_param"):
        one = replace(one, image=add_noise(one.image, transform.noise_param, rng))
    one = _crop(one, transform, rng, train)
    if transform.mirror and rng.integers(2):
        boxes = one.boxes.copy()
        boxes[:, [0, 2]] = 1 - one.boxes[:, [2, 0]]
        one = replace(one, image=one.image[:, ::-1], boxes=boxes)
    return one


def jittered(jitter: float, rng: np.random.Generator) -> Box:
    """Return a part with at least 1 - jitter of each side, or by chance the whole image."""
    way = rng.choice(3, p=[0.2, 0.2, 0.6])
    if way == 0:
        return WHOLE
    wide, high = rng.uniform(1 - (jitter / 2 if way == 1 else jitter), 1, 2)
    left, top = rng.uniform(0, 1 - wide), rng.uniform(0, 1 - high)
    return left, top, left + wide, top + high


def _emits(transform: caffe_pb2.TransformationParameter) -> caffe_pb2.EmitConstraint | None:
    return transform.emit_constraint if transform.HasField("emit_constraint") else None


def _expand(
    one: Annotated, transform: caffe_pb2.TransformationParameter, rng: np.random.Generator
) -> Annotated:
    """Return the image somewhere on a larger one that is filled with the mean."""
    how = transform.expand_param
    if rng.random() > how.prob or abs(how.max_expand_ratio - 1) < 1e-2:
        return one
    ratio = rng.uniform(1, how.max_expand_ratio)
    high, wide, channels = one.image.shape
    size = int(high * ratio), int(wide * ratio)
    if size[0] * size[1] > LARGEST:
        raise FileError("the image", f"would have {size[0]} x {size[1]} pixels after expand_param")
    top, left = (math.floor(rng.uniform(0, size[i] - one.image.shape[i])) for i in range(2))
    mean = np.array(transform.mean_value or [0.0])
    canvas = np.empty((*size, channels), np.uint8)
    canvas[:] = np.broadcast_to(np.clip(np.rint(mean), 0, 255), (channels,)).astype(np.uint8)
    canvas[top : top + high, left : left + wide] = one.image
    part = (-left / wide, -top / high, (size[1] - left) / wide, (size[0] - top) / high)
    return replace(one.within(part, _emits(transform)), image=canvas)


def _crop_boxes(
    one: Annotated, part: Box, transform: caffe_pb2.TransformationParameter
) -> Annotated:
    high, wide, _ = one.image.shape
    left, top, right, bottom = np.clip(part, 0, 1).tolist()
    rows, columns = (
        slice(int(top * high), int(bottom * high)),
        slice(int(left * wide), int(right * wide)),
    )
    image = one.image[rows, columns]
    if not image.size:
        return one
    return replace(one.within((left, top, right, bottom), _emits(transform)), image=image)


def resized(size: tuple[int, int], how: caffe_pb2.ResizeParameter) -> tuple[int, int]:
    """Height and width of an image after `resize_param`, before it is padded."""
    high, wide = size
    aspect, target = wide / high, how.width / how.height
    if how.resize_mode == _RESIZE.WARP:
        return how.height, how.width
    grows = how.resize_mode == _RESIZE.FIT_SMALL_SIZE
    if (aspect < target) == grows and aspect != target:
        return max(int(how.width / aspect), 1), how.width
    return how.height, max(int(aspect * how.height), 1)


def _resize(one: Annotated, how: caffe_pb2.ResizeParameter, rng: np.random.Generator) -> Annotated:
    ways = list(how.interp_mode) or [_RESIZE.LINEAR]
    high, wide, _ = one.image.shape
    size = resized((high, wide), how)
    image = resize(one.image, size, WAYS[ways[rng.integers(len(ways))]])
    if how.resize_mode != _RESIZE.FIT_LARGE_SIZE_AND_PAD:
        return replace(one, image=image)
    over = how.height - size[0], how.width - size[1]
    edges = [(over[0] // 2, over[0] - over[0] // 2), (over[1] // 2, over[1] - over[1] // 2), (0, 0)]
    image = _padded(image, edges, how)
    before = np.array([over[1] / 2 / how.width, over[0] / 2 / how.height] * 2, np.float32)
    return replace(one, image=image, boxes=before + one.boxes * (1 - 2 * before))


def _padded(image: Array, edges: Any, how: caffe_pb2.ResizeParameter) -> Array:
    mode = PADS[how.pad_mode]
    if mode != "constant":
        return np.pad(image, edges, mode=mode)  # type: ignore[call-overload, no-any-return]
    values = np.broadcast_to(np.array(how.pad_value or [0.0]), (image.shape[2],))
    planes = [
        np.pad(image[:, :, c], edges[:2], constant_values=int(np.clip(round(value), 0, 255)))
        for c, value in enumerate(values.tolist())
    ]
    return np.stack(planes, 2)


def _crop(
    one: Annotated,
    transform: caffe_pb2.TransformationParameter,
    rng: np.random.Generator,
    train: bool,
) -> Annotated:
    high, wide, _ = one.image.shape
    size = (
        transform.crop_h or transform.crop_size or high,
        transform.crop_w or transform.crop_size or wide,
    )
    if size[0] > high or size[1] > wide:
        raise FileError(
            "the image", f"is {high} x {wide}, smaller than the crop {size[0]} x {size[1]}"
        )
    free = high - size[0], wide - size[1]
    top, left = (int(rng.integers(f + 1)) if train else f // 2 for f in free)
    image = one.image[top : top + size[0], left : left + size[1]]
    part = (left / wide, top / high, (left + size[1]) / wide, (top + size[0]) / high)
    return replace(one.within(part, _emits(transform)), image=image)
