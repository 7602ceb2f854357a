"""Pictures with pictures as labels (SegNet, dense_image_data; DeepLab, image_seg_data)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image_decoding import decode, numbered_lines
from sparknet.loaders.resize import resize

Array = np.ndarray[Any, Any]
Pair = tuple[str, str]
LARGEST = 1 << 28
"""Pixels that a scaled picture may have."""
HALF = 127
"""Brighter pixels of a map of edges are edges."""


def read_pairs(path: str, two: bool = True) -> list[Pair]:
    """Read the lines `picture labels` of a list; with `two` False the second may be missing."""
    pairs = []
    for number, line in numbered_lines(path):
        words = line.split()
        if len(words) != 2 and (two or len(words) > 2):
            raise FileError(path, f"line {number} is no pair of a picture and its labels")
        pairs.append((words[0], words[1] if len(words) > 1 else ""))
    if not pairs:
        raise FileError(path, "holds no picture")
    return pairs


def load(pair: Pair, values: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return a picture (height x width x channels) and its labels (height x width), as bytes."""
    root, size = values["root_folder"], values["size"]
    path = root + pair[0]
    image = decode(path, path, values["is_color"]).transpose(1, 2, 0)
    if size:
        image = resize(image, size, "cv2.linear")
    high, wide = image.shape[:2]
    kind = values["label_type"]
    if kind == "pixel":
        labels = decode(root + pair[1], root + pair[1], False)[0]
        if size:
            labels = resize(labels[:, :, None], size, values.get("label_way", "cv2.nearest"))
            labels = labels.reshape(size)
        if values.get("halves"):
            labels = (labels > HALF).astype(np.uint8)
        if labels.shape != (high, wide):
            size_text = " x ".join(map(str, labels.shape))
            raise FileError(root + pair[1], f"is {size_text}; its picture is {high} x {wide}")
        return image, labels
    if kind == "none":
        return image, np.full((high, wide), values["ignore_label"], np.uint8)
    try:
        return image, np.full((high, wide), int(pair[1]), np.int32)
    except ValueError as error:
        raise FileError(path, f"needs a number as its label, not '{pair[1]}'") from error


def transform(
    image: Array, labels: Array, values: Mapping[str, Any], rng: np.random.Generator, train: bool
) -> tuple[Array, Array]:
    """Scaled, padded, cropped, mirrored, less the mean: channels x height x width, and labels."""
    factors = values["scale_factors"]
    factor = factors[rng.integers(len(factors))] if factors else 1
    if factor != 1:
        size = int(image.shape[0] * factor), int(image.shape[1] * factor)
        image = resize(image, size, "cv2.linear")
        labels = resize(labels[:, :, None], size, "cv2.nearest")[:, :, 0]
    mean = values["mean"]
    pixels = image.astype(np.float32)
    crop = values["crop"]
    if crop:
        pixels, labels = _padded(pixels, labels, crop, mean, values["ignore_label"])
        free = pixels.shape[0] - crop[0], pixels.shape[1] - crop[1]
        top, left = (int(rng.integers(f + 1)) if train else f // 2 for f in free)
        part = slice(top, top + crop[0]), slice(left, left + crop[1])
        pixels, labels = pixels[part], labels[part]
        if mean is not None and mean.shape[:2] == image.shape[:2]:
            mean = mean[part]
    if mean is not None:
        pixels = pixels - mean
    if values["mirror"] and rng.integers(2):
        pixels, labels = pixels[:, ::-1], labels[:, ::-1]
    return pixels.transpose(2, 0, 1) * np.float32(values["scale"]), labels


def strided(
    image: Array, labels: Array, values: Mapping[str, Any], rng: np.random.Generator
) -> tuple[Array, Array]:
    """Scale by chance and cut a part of strides' multiples (yjxiong: data_transformer.cpp)."""
    least, most = values["scales"]
    factor = rng.uniform(least, most)
    size = tuple(max(int(side * factor + 0.5), 1) for side in image.shape[:2])
    if size[0] * size[1] > LARGEST:
        raise FileError(values["source"], f"has a picture that becomes {size[0]} x {size[1]}")
    image = resize(np.ascontiguousarray(image), (size[0], size[1]), "cv2.linear")
    labels = resize(labels[:, :, None], (size[0], size[1]), "cv2.nearest").reshape(size)
    stride = values["stride"]
    crop = [side // stride * stride for side in size]
    if values["most"]:
        crop = [min(side, bound) for side, bound in zip(crop, values["most"], strict=True)]
    if min(crop) < 1:
        raise FileError(values["source"], f"has a picture that is smaller than the stride {stride}")
    top, left = (int(rng.integers(side - part + 1)) for side, part in zip(size, crop, strict=True))
    place = slice(top, top + crop[0]), slice(left, left + crop[1])
    pixels, labels = image[place].astype(np.float32), labels[place]
    if values["mean"] is not None:
        pixels = pixels - values["mean"]
    if values["mirror"] and rng.integers(2):
        pixels, labels = pixels[:, ::-1], labels[:, ::-1]
    return pixels.transpose(2, 0, 1) * np.float32(values["scale"]), labels


def _padded(
    pixels: Array, labels: Array, crop: tuple[int, int], mean: Any, ignored: int
) -> tuple[Array, Array]:
    """Room for the crop below and to the right: the mean, and labels that are ignored."""
    more = [(0, max(size - have, 0)) for size, have in zip(crop, pixels.shape, strict=False)]
    if not any(after for _, after in more):
        return pixels, labels
    high, wide, channels = pixels.shape
    canvas = np.zeros((high + more[0][1], wide + more[1][1], channels), np.float32)
    if mean is not None and mean.shape[:2] == (1, 1):
        canvas[:] = mean
    canvas[:high, :wide] = pixels
    return canvas, np.pad(labels.astype(np.int32), more, constant_values=ignored)
