"""Preprocessing: how a picture of any size becomes the numbers that a net is fed."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite, prod
from typing import Any, Literal

import numpy as np

from sparknet.errors import FileError, SpecError, shown
from sparknet.loaders.image import LARGEST
from sparknet.loaders.transform import mean_image
from sparknet.native.batch_items import Transformation
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean

Floats = np.ndarray[Any, np.dtype[np.float32]]
Size = tuple[int, int]
Mean = tuple[float, ...] | Floats

INTERPOLATIONS = {
    "caffe": ("nearest", "linear", "cubic"),
    "cv2": ("nearest", "linear", "cubic", "area"),
    "pil": ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"),
}
"""The libraries whose numbers are given, and their ways of resizing."""
MODES = ("exact", "shorter", "fit")
COLORS = ("bgr", "rgb", "grey")
LONGEST_SIDE = 1 << 14
_LARGEST_TEXT = 1 << 30


@dataclass(frozen=True, kw_only=True, eq=False)
class Preprocessing:
    """What happens to a picture, in this order: docs/images.md.

    resize, crop, colour order, mirror, then ``(value - mean) * scale / std`` for values from 0
    to 255.
    """

    resize: Size | None = None
    """The height and the width, or one number for both."""
    resize_mode: Literal["exact", "shorter", "fit"] = "exact"
    """``exact`` changes the proportions; ``shorter`` covers the size with the picture and keeps
    the centre; ``fit`` puts the whole picture in the centre, between bars of ``pad``."""
    pad: tuple[float, ...] = (0.0,)
    """The value of the bars, from 0 to 255: one, or one a channel."""
    interpolation: str = "caffe.linear"
    """A library and its way of resizing: `INTERPOLATIONS`."""
    crop: Size | None = None
    """The height and the width that are kept: at random in training, else the centre."""
    color: Literal["bgr", "rgb", "grey"] | None = None
    """The order of the channels; None is grey for one channel and Caffe's bgr for three."""
    upright: bool = False
    """Whether a photograph is turned as its EXIF data say; Caffe does not."""
    mean: Mean | None = None
    """Subtracted: a value, or one a channel, or a picture (channels x height x width, or the path
    of a .binaryproto or .npy)."""
    scale: float = 1.0
    std: tuple[float, ...] | None = None
    """The divisor: a value, or one a channel."""
    mirror: bool | Literal["always"] = False
    """Whether half of the pictures are mirrored in training, or ``always``, as transform_param
    does."""

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    @classmethod
    def of(cls, settings: Any) -> Preprocessing | None:
        """The description in a mapping or in an object's attributes; None where nothing is said.

        A setting that is None counts as not given.
        """
        names = [field.name for field in fields(cls)]
        if isinstance(settings, Mapping):
            for name in settings:
                if name not in names:
                    near = did_you_mean(name, names)
                    raise SpecError(f"there is no keyword '{shown(name)}'{near}")
            given = settings
        else:
            given = {name: getattr(settings, name, None) for name in names}
        said = {name: value for name, value in given.items() if value is not None}
        return cls(**said) if said else None

    @classmethod
    def of_param(
        cls, options: caffe_pb2.TransformationParameter, mean: Floats | None
    ) -> Preprocessing:
        """The description in a net's transform_param; ``mean`` is what its mean_file holds."""
        said: dict[str, Any] = {
            "interpolation": "cv2.linear",
            "crop": options.crop_size or None,
            "mean": mean if mean is not None else tuple(options.mean_value) or None,
            "scale": options.scale,
            "mirror": "always" if options.mirror else False,
        }
        return cls(**said)

    @classmethod
    def of_classifier(
        cls,
        image_dims: Sequence[int] | None = None,
        mean: Any = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
        crop: int | Sequence[int] | None = None,
    ) -> Preprocessing:
        """The description in the terms of `caffe.Classifier`, whose pictures are from 0 to 1."""
        orders = {None: "rgb", (0, 1, 2): "rgb", (2, 1, 0): "bgr", (0,): "grey"}
        order = None if channel_swap is None else tuple(channel_swap)
        if order not in orders:
            raise SpecError(f"channel_swap is {channel_swap!r}: (2, 1, 0) or (0, 1, 2) is known")
        raw = 1.0 if raw_scale is None else float(raw_scale)
        if not raw:
            raise SpecError("raw_scale is 0: every picture would be the same")
        # (x raw - mean) input = (255 x - mean 255 / raw) (raw / 255) input
        said: dict[str, Any] = {
            "resize": None if image_dims is None else tuple(image_dims),
            "crop": crop,
            "color": orders[order],
            "mean": None if mean is None else np.asarray(mean, np.float64) * (255.0 / raw),
            "scale": raw / 255.0 * (1.0 if input_scale is None else float(input_scale)),
        }
        return cls(**said)

    # -- what it says ----------------------------------------------------------------------

    @property
    def mean_image(self) -> Floats | None:
        """The mean where it is a picture."""
        return self.mean if isinstance(self.mean, np.ndarray) else None

    @property
    def mean_values(self) -> tuple[float, ...]:
        """The means of the channels; empty where there is none, or a picture."""
        return self.mean if isinstance(self.mean, tuple) else ()

    @property
    def library(self) -> str:
        """The library whose numbers are given: "caffe" (caffe.io), "cv2" or "pil"."""
        return self.interpolation.partition(".")[0]

    def check_channels(self, channels: int) -> None:
        """SpecError where a setting is for another number of channels."""
        for name, found in (("mean", self.mean_values), ("std", self.std or ()), ("pad", self.pad)):
            if len(found) not in (0, 1, channels):
                raise SpecError(f"{name} has {len(found)} values for {channels} channels")
        if (mean := self.mean_image) is not None and len(mean) != channels:
            raise SpecError(f"the mean is of {len(mean)} channels for data of {channels}")
        if self.color is not None and (self.color == "grey") != (channels == 1):
            raise SpecError(f"color is '{self.color}' for {channels} channels")

    def completed(self, record: tuple[int, ...]) -> Preprocessing:
        """With a size for images of any size, where none is given: the mean's or the net's own.

        With a crop, images keep their size.
        """
        if self.resize is not None:
            return self
        size = (record[1], record[2]) if self.crop is None else None
        if (mean := self.mean_image) is not None and mean.shape[1:] != self.crop:
            size = mean.shape[1], mean.shape[2]
        return self if size is None else replace(self, resize=size)

    def transformation(self, phase: int, seed: int) -> Transformation:
        """Crop, mirror, mean, scale and std, for a phase."""
        training = phase == caffe_pb2.TRAIN
        return Transformation(
            crop=self.crop,
            random_crop=self.crop is not None and training,
            mirror=self.mirror == "always" or (bool(self.mirror) and training),
            scale=self.scale,
            mean=self.mean_image,
            mean_values=self.mean_values,
            std=self.std or (),
            seed=seed,
        )

    def inner_size(self, old: Size, name: str) -> Size:
        """The size that an image of another size is resized to, before it is cut or padded."""
        assert self.resize is not None
        (height, width), (rows, columns) = self.resize, old
        is_flat = height * columns >= width * rows
        if self.resize_mode == "shorter":
            if is_flat:  # torchvision rounds the longer side down
                width = max(width, columns * height // rows)
            else:
                height = max(height, rows * width // columns)
        elif self.resize_mode == "fit":
            if is_flat:  # Pillow's ImageOps.contain
                height = max(1, round(rows / columns * width))
            else:
                width = max(1, round(columns / rows * height))
        if height * width > LARGEST:
            raise FileError(name, f"would become {height} x {width} pixels, which is too large")
        return height, width

    def kept(self, image: Any) -> Any:
        """The part of a resized image of height x width (x channels) that is kept.

        Its centre is where the crop wants it: a crop of it is a crop of the whole image.
        """
        assert self.resize is not None
        begins = []
        for size, wanted, crop in zip(
            image.shape, self.resize, self.crop or self.resize, strict=False
        ):
            inner = min(crop, wanted)
            begins.append(max(0, (size - inner) // 2 - (wanted - inner) // 2))
        top, left = begins
        return image[top : top + self.resize[0], left : left + self.resize[1]]

    def said(self) -> dict[str, Any]:
        """The settings that are not the default ones."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if not _equal(getattr(self, field.name), field.default)
        }

    # -- as text ---------------------------------------------------------------------------

    def to_json(self) -> str:
        """Text from which `from_json` makes an equal description, on any machine."""
        said = self.said()
        if (mean := self.mean_image) is not None:
            packed = base64.b64encode(mean.astype("<f4").tobytes()).decode("ascii")
            said["mean"] = {"shape": list(mean.shape), "float32": packed}
        return json.dumps(said, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, name: str = "preprocessing") -> Preprocessing:
        """The description in such a text; ``name`` is its file's, for messages."""
        try:
            if len(text) > _LARGEST_TEXT:
                raise ValueError("it is too long")
            said = json.loads(text)
            if not isinstance(said, dict):
                raise ValueError("it is no object")
            if isinstance(said.get("mean"), dict):
                said["mean"] = _unpacked(said["mean"])
            elif isinstance(said.get("mean"), str):
                raise ValueError("mean is a path")
            return cls.of(said) or cls()
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise FileError(name, f"is no description of pictures: {shown(error)}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preprocessing):
            return NotImplemented
        return all(
            _equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.resize, self.crop, self.interpolation, self.scale, self.mean_values))

    def __repr__(self) -> str:
        said = ", ".join(
            f"{name}=<{' x '.join(map(str, value.shape))}>"
            if isinstance(value, np.ndarray)
            else f"{name}={value!r}"
            for name, value in self.said().items()
        )
        return f"Preprocessing({said})"


NAMES = tuple(field.name for field in fields(Preprocessing))
"""The keywords that describe preprocessing, wherever they are taken."""


def split(keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Those among some keywords that describe preprocessing, and the others."""
    mine = {name: value for name, value in keywords.items() if name in NAMES}
    return mine, {name: value for name, value in keywords.items() if name not in mine}


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return isinstance(one, np.ndarray) and np.array_equal(one, other)
    return bool(one == other)


def _unpacked(packed: Mapping[str, Any]) -> Floats:
    shape = [int(size) for size in packed["shape"]]
    data = base64.b64decode(packed["float32"], validate=True)
    if len(shape) != 3 or min(shape) < 1 or len(data) != 4 * prod(shape):
        raise ValueError(f"a mean of {shape} has other data than that")
    return np.frombuffer(data, "<f4").reshape(shape).astype(np.float32)


def _size(name: str, value: Any) -> Size | None:
    if value is None:
        return None
    sizes = (value, value) if isinstance(value, (int, np.integer)) else value
    try:
        found = tuple(sizes)
        height, width = (int(one) for one in found)
        whole = (height, width) == found and not any(isinstance(one, bool) for one in found)
    except (TypeError, ValueError):
        whole, height, width = False, 0, 0
    if not whole or not (0 < height <= LONGEST_SIDE and 0 < width <= LONGEST_SIDE):
        raise SpecError(
            f"{name} is {shown(repr(value))}: a height and a width are needed, "
            f"or one number, up to {LONGEST_SIDE}"
        )
    return height, width


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """One number, or one for each channel."""
    try:
        found = tuple(float(one) for one in np.asarray(value, np.float64).reshape(-1))
    except (TypeError, ValueError):
        found = ()
    if np.ndim(value) > 1 or not found or not all(map(isfinite, found)):
        raise SpecError(f"{name} is {shown(repr(value))}: a number is needed, or one a channel")
    return found


def _mean(name: str, value: Any) -> Mean | None:
    if value is None:
        return None
    if isinstance(value, (str, os.PathLike)):
        value = read_mean(os.fspath(value))
    if np.ndim(value) <= 1:
        return _numbers(name, value)
    image = np.array(value, np.float32)
    if image.ndim == 4 and len(image) == 1:
        image = image[0]
    if image.ndim != 3 or not image.size or not np.isfinite(image).all():
        shape = " x ".join(map(str, image.shape))
        raise SpecError(f"{name} is {shape}: channels x height x width of finite numbers is needed")
    image.flags.writeable = False
    return image


def read_mean(path: str) -> Floats:
    """The mean in a .binaryproto or a .npy: a picture, or a value a channel."""
    if not path.endswith(".npy"):
        return mean_image(path)
    try:
        found: Floats = np.load(path, allow_pickle=False).astype(np.float32)
        return found
    except (OSError, ValueError, EOFError) as error:
        raise FileError(path, f"is no array that can be read: {shown(error)}") from error


def _scale(name: str, value: Any) -> float:
    numbers = _numbers(name, value)
    if len(numbers) != 1:
        raise SpecError(f"{name} is {value!r}: one number is needed")
    return numbers[0]


def _std(name: str, value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers = _numbers(name, value)
    if min(numbers) <= 0:
        raise SpecError(f"{name} is {value!r}: numbers above 0 are needed")
    return numbers


def _one_of(*known: Any) -> Any:
    def check(name: str, value: Any) -> Any:
        if not isinstance(value, (str, bool, type(None))) or value not in known:
            told = ", ".join(repr(one) for one in known)
            near = did_you_mean(value, [one for one in known if isinstance(one, str)])
            raise SpecError(f"{name} is {shown(repr(value))}, not one of {told}{near}")
        return value

    return check


_CHECKS = {
    "resize": _size,
    "resize_mode": _one_of(*MODES),
    "pad": _numbers,
    "interpolation": _one_of(
        *(f"{library}.{way}" for library, ways in INTERPOLATIONS.items() for way in ways)
    ),
    "crop": _size,
    "color": _one_of(None, *COLORS),
    "upright": _one_of(False, True),
    "mean": _mean,
    "scale": _scale,
    "std": _std,
    "mirror": _one_of(False, True, "always"),
}
