"""Preprocessing: how a picture of any size becomes the numbers that a net is fed."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import signature
from math import prod
from typing import Any, Literal, TypedDict

import numpy as np

from sparknet import renamed
from sparknet.errors import FileError, SpecError, clean
from sparknet.loaders.image_decoding import LARGEST
from sparknet.loaders.image_settings import CHECKS, Mean, Size
from sparknet.native.transform import Transformation
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean

Floats = np.ndarray[Any, np.dtype[np.float32]]
_LARGEST_TEXT = 1 << 30


class ImageSettings(TypedDict, total=False):
    """The fields of `Preprocessing` as keywords; None counts as not given."""

    resize: int | Sequence[int] | None
    resize_mode: Literal["exact", "shorter", "fit"] | None
    pad: float | Sequence[float] | None
    interpolation: str | None
    crop: int | Sequence[int] | None
    color: Literal["bgr", "rgb", "grey"] | None
    upright: bool | None
    exact: bool | None
    mean: float | Sequence[float] | np.ndarray[Any, Any] | str | os.PathLike[str] | None
    scale: float | None
    std: float | Sequence[float] | None
    mirror: bool | Literal["always"] | None


@renamed.fields(said="settings")
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
    interpolation: str | None = None
    """A library and its way of resizing: `INTERPOLATIONS`.  None is OpenCV's linear one where the
    net has a transform_param, as its data layers resize so, else that of caffe.io."""
    crop: Size | None = None
    """The height and the width that are kept: at random in training, else the centre."""
    color: Literal["bgr", "rgb", "grey"] | None = None
    """The order of the channels; None is grey for one channel and Caffe's bgr for three."""
    upright: bool = False
    """Whether a photograph is turned as its EXIF data say; Caffe does not."""
    exact: bool | None = None
    """Whether a JPEG is decoded in full before it shrinks.  None: unless `interpolation` smooths,
    as Pillow's ways and cv2.area do."""
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
        for name, check in CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))

    @classmethod
    def of(cls, settings: Any) -> Preprocessing | None:
        """Return the description in a mapping or in an object's attributes; None where nothing
        is said.

        A setting that is None counts as not given.
        """
        names = [field.name for field in fields(cls)]
        if isinstance(settings, Mapping):
            for name in settings:
                if name not in names:
                    near = did_you_mean(name, names)
                    raise SpecError(f"there is no keyword '{clean(name)}'{near}")
            values = settings
        else:
            values = {name: getattr(settings, name, None) for name in names}
        present = {name: value for name, value in values.items() if value is not None}
        return cls(**present) if present else None

    @classmethod
    def check_keywords(cls, keywords: Mapping[str, Any], function: Callable[..., Any]) -> None:
        """Refuse keywords that are neither settings nor keywords of a function that takes these."""
        names = [field.name for field in fields(cls)]
        for name in keywords:
            if name not in names:
                keywords_known = [*signature(function).parameters, *names]
                near = did_you_mean(name, keywords_known)
                raise SpecError(f"there is no keyword '{clean(name)}'{near}")

    @classmethod
    def from_keywords(
        cls, preprocessing: Preprocessing | None, keywords: Mapping[str, Any]
    ) -> Preprocessing | None:
        """Return the description of a caller who gives it whole or by keywords."""
        overrides = cls.of(keywords)
        if preprocessing is None or overrides is None:
            return overrides if preprocessing is None else preprocessing
        raise SpecError(f"give preprocessing, or {', '.join(keywords)}; not both")

    @classmethod
    def of_param(
        cls, options: caffe_pb2.TransformationParameter, mean: Floats | None
    ) -> Preprocessing:
        """Return the description in a net's transform_param and its ``mean`` file."""
        values: dict[str, Any] = {
            "interpolation": "cv2.linear",
            "crop": options.crop_size or None,
            "mean": mean if mean is not None else tuple(options.mean_value) or None,
            "scale": options.scale,
            "mirror": "always" if options.mirror else False,
        }
        return cls(**values)

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
        """Return the description as `caffe.Classifier` says it, for images from 0 to 1."""
        orders = {None: "rgb", (0, 1, 2): "rgb", (2, 1, 0): "bgr", (0,): "grey"}
        order = None if channel_swap is None else tuple(channel_swap)
        if order not in orders:
            raise SpecError(f"channel_swap is {channel_swap!r}: (2, 1, 0) or (0, 1, 2) is known")
        raw = 1.0 if raw_scale is None else float(raw_scale)
        if not raw:
            raise SpecError("raw_scale is 0: every picture would be the same")
        # (x raw - mean) input = (255 x - mean 255 / raw) (raw / 255) input
        values: dict[str, Any] = {
            "resize": None if image_dims is None else tuple(image_dims),
            "crop": crop,
            "color": orders[order],
            "mean": None if mean is None else np.asarray(mean, np.float64) * (255.0 / raw),
            "scale": raw / 255.0 * (1.0 if input_scale is None else float(input_scale)),
        }
        return cls(**values)

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
        return self.way.partition(".")[0]

    @property
    def is_exact(self) -> bool:
        """Whether JPEGs are decoded in full."""
        smooths = self.way == "cv2.area" or (self.library == "pil" and self.way != "pil.nearest")
        return not smooths if self.exact is None else self.exact

    @property
    def way(self) -> str:
        """The interpolation, resolved."""
        return self.interpolation or "caffe.linear"

    def over(self, own: Preprocessing, name: str) -> Preprocessing:
        """This description over what the net's transform_param says for the input ``name``."""
        values = self.settings()
        decided = [one for one in OF_PARAM if one != "mean" or own.mean is not None]
        if both := [setting for setting in values if setting in decided]:
            raise SpecError(
                f"the net has a transform_param for '{name}', which decides {', '.join(decided)}: "
                f"leave {' and '.join(both)} out, or give a net without it"
            )
        return replace(own, **values)

    def cropped(self, record: tuple[int, ...], name: str) -> Preprocessing:
        """With a crop to the net's input ``name`` where the size is larger; SpecError where what
        comes out does not fit the input.
        """
        self.check_channels(record[0])
        size = (record[1], record[2])
        out = self.crop or self.resize
        if out is None or out == size:
            return self
        if self.crop is None and out[0] >= size[0] and out[1] >= size[1]:
            return replace(self, crop=size)
        setting = "resize" if self.crop is None else "crop"
        raise SpecError(
            f"{setting} gives images of {out[0]} x {out[1]}; the net's input '{name}' is "
            f"{' x '.join(map(str, record))}"
        )

    def check_channels(self, channels: int) -> None:
        """SpecError where a setting is for another number of channels."""
        for name, numbers in (
            ("mean", self.mean_values),
            ("std", self.std or ()),
            ("pad", self.pad),
        ):
            if len(numbers) not in (0, 1, channels):
                raise SpecError(f"{name} has {len(numbers)} values for {channels} channels")
        if (mean := self.mean_image) is not None and len(mean) != channels:
            raise SpecError(f"the mean has {len(mean)} channels, the data has {channels}")
        if self.color is not None and (self.color == "grey") != (channels == 1):
            raise SpecError(f"color is '{self.color}' for {channels} channels")

    def completed(self, record: tuple[int, ...]) -> Preprocessing:
        """Return the same with `resize` set, if it was not: to the size of the mean image or of
        the net.

        With a crop and no mean image, images keep their size.
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
        """Return the size that an image is resized to, before it is cut or padded."""
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

    def crop_resized(self, image: Any) -> Any:
        """Return the part of a resized image of height x width (x channels) that is kept.

        Its centre is where the crop wants it: a crop of it is a crop of the whole image.
        """
        assert self.resize is not None
        begins = []
        for size, target, crop in zip(
            image.shape, self.resize, self.crop or self.resize, strict=False
        ):
            inner = min(crop, target)
            begins.append(max(0, (size - inner) // 2 - (target - inner) // 2))
        top, left = begins
        return image[top : top + self.resize[0], left : left + self.resize[1]]

    def settings(self) -> dict[str, Any]:
        """Return the settings that are not the default ones."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if not _equal(getattr(self, field.name), field.default)
        }

    # -- as text ---------------------------------------------------------------------------

    def to_json(self) -> str:
        """Text from which `from_json` makes an equal description, on any machine."""
        values = self.settings()
        if (mean := self.mean_image) is not None:
            packed = base64.b64encode(mean.astype("<f4").tobytes()).decode("ascii")
            values["mean"] = {"shape": list(mean.shape), "float32": packed}
        return json.dumps(values, sort_keys=True)

    @classmethod
    def from_json(cls, text: str, name: str = "preprocessing") -> Preprocessing:
        """Return the description in such a text; ``name`` is its file's, for messages."""
        try:
            if len(text) > _LARGEST_TEXT:
                raise ValueError("it is too long")
            values = json.loads(text)
            if not isinstance(values, dict):
                raise ValueError("it is no object")
            if isinstance(values.get("mean"), dict):
                values["mean"] = _unpacked(values["mean"])
            elif isinstance(values.get("mean"), str):
                raise ValueError("mean is a path")
            return cls.of(values) or cls()
        except (ValueError, TypeError, KeyError, RecursionError, binascii.Error) as error:
            raise FileError(name, f"is no description of pictures: {clean(error)}") from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Preprocessing):
            return NotImplemented
        return all(
            _equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.resize, self.crop, self.interpolation, self.scale, self.mean_values))

    def __repr__(self) -> str:
        text = ", ".join(
            f"{name}=<{' x '.join(map(str, value.shape))}>"
            if isinstance(value, np.ndarray)
            else f"{name}={value!r}"
            for name, value in self.settings().items()
        )
        return f"Preprocessing({text})"


OF_PARAM = ("crop", "mean", "scale", "std", "mirror")
"""What a transform_param decides."""
NAMES = tuple(field.name for field in fields(Preprocessing))
"""The keywords that describe preprocessing, wherever they are taken."""


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
