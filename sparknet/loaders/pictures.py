"""Records that are compressed images: decoded side by side, the damaged ones named and counted."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import numpy as np

from sparknet import renamed
from sparknet.errors import FileError, SpecError
from sparknet.loaders.image import LARGEST, Decoders, Pixels, Size, decode, image_shape
from sparknet.loaders.image_arrays import ImageArrays
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.records import (
    Batch,
    Chain,
    Column,
    Indices,
    Opened,
    Records,
    Subset,
    rows_of,
)
from sparknet.native.alone import cached_property

Shape3 = tuple[int, int, int]

LABEL = Column(np.dtype(np.int32), ())


Color = bool | Literal["bgr", "grey"] | None
_COLORS = {"bgr": True, "grey": False}


class PictureReader:
    """How images become arrays of one shape.

    `size` is a height and a width to resize to; without it all images must have the size of
    the first.  `color` is True or "bgr" (blue, green, red), False or "grey", or None for images as
    they are stored; with True a net of one channel gets grey.
    `invalid` says what happens to an image that cannot be decoded: "raise" an error, or "drop"
    it and note it in `failed`, under its name.  A `preprocessing` with a size says more.
    """

    def __init__(
        self,
        size: Size | None,
        color: Color,
        invalid: str,
        preprocessing: Preprocessing | None = None,
    ) -> None:
        if invalid == "skip":
            renamed.warn("invalid='skip'", "invalid='drop'", 5)
            invalid = "drop"
        if invalid not in ("raise", "drop"):
            raise SpecError(f"invalid is {invalid!r}, neither 'raise' nor 'drop'")
        if color not in (True, False, None, *_COLORS):
            raise SpecError(
                f"color is {color!r}: True or 'bgr', False or 'grey', or None is needed; "
                "preprocessing=Preprocessing(color='rgb', resize=…) knows more"
            )
        self.size, self.skips = size, invalid == "drop"
        self.color: bool | None = _COLORS[color] if isinstance(color, str) else color
        self.preprocessing = preprocessing
        self.may_be_grey = color is True and (preprocessing is None or preprocessing.color is None)
        self.failed: dict[str, str] = {}
        self._arrays: ImageArrays | None = None
        if preprocessing is not None:
            if preprocessing.resize is None or size is not None:
                raise SpecError("give size, or preprocessing with resize")
            self.size, self.color = preprocessing.resize, preprocessing.color != "grey"
            self._arrays = ImageArrays(preprocessing, 3 if self.color else 1, training=True)
        self.decoders = Decoders()

    def shape(self, image: str | bytes, name: str) -> Shape3:
        """Return the shape that an image will have, by its header."""
        channels, height, width = image_shape(image, name)
        if height * width > LARGEST:
            raise FileError(name, f"announces {height} x {width} pixels, which is too large")
        channels = channels if self.color is None else 3 if self.color else 1
        return (channels, *(self.size or (height, width)))

    def read(self, image: str | bytes, name: str, shape: Shape3 | None = None) -> Pixels:
        """Return an image as channels x height x width; of that shape, if it is given."""
        actual = self.shape(image, name)
        if shape is not None and actual != shape:
            sizes = [" x ".join(map(str, one)) for one in (actual, shape)]
            raise FileError(
                name, f"is {sizes[0]}, the first image {sizes[1]}: give a size to resize to"
            )
        if self._arrays is not None:
            return self._arrays.of_file(image, name)
        return decode(image, name, self.color, self.size)

    def fail(self, error: FileError) -> None:
        """Note a damaged image, or raise."""
        if not self.skips:
            raise error
        self.failed.setdefault(error.path, str(error))


class Pictures(Opened, ABC):
    """Images and labels; columns data (channels x height x width bytes) and label."""

    def __init__(self, reader: PictureReader, labels: Sequence[int]) -> None:
        self.reader = reader
        self.labels = np.array(labels, np.int32)

    @property
    def failed(self) -> Mapping[str, str]:
        """Images that were left out so far, and why."""
        return self.reader.failed

    @property
    def columns(self) -> Mapping[str, Column]:
        return {"data": Column(np.dtype(np.uint8), self._shape), "label": LABEL}

    def __len__(self) -> int:
        return len(self.labels)

    def in_grey(self) -> Records:
        """Return the same images, opened again for a net of one channel."""
        how = self.reader.preprocessing
        if how is not None:
            return cast(Records, self._again(preprocessing=replace(how, color="grey")))
        return cast(Records, self._again(color=False))

    def take(self, indices: Indices) -> Batch:
        rows = rows_of(indices, len(self))
        images = self.reader.decoders.map(self._decoded, rows.tolist())
        places = [place for place, image in enumerate(images) if image is not None]
        data = np.empty((len(places), *self._shape), np.uint8)
        for out, place in zip(data, places, strict=True):
            out[...] = images[place]
        return {"data": data, "label": self.labels[rows[places]]}

    @abstractmethod
    def name(self, number: int) -> str:
        """Return the name of an image in messages."""

    @abstractmethod
    def stored(self, number: int) -> str | bytes:
        """Return the path of an image, or its bytes."""

    def _decoded(self, number: int) -> Any:
        try:
            return self.reader.read(self.stored(number), self.name(number), self._shape)
        except FileError as error:
            self.reader.fail(error)
            return None

    @cached_property
    def _shape(self) -> Shape3:
        """The shape of the first image whose header can be read, if no option gives it."""
        if self.reader.size is not None and self.reader.color is not None:
            return (3 if self.reader.color else 1, *self.reader.size)
        for number in range(len(self)):
            try:
                return self.reader.shape(self.stored(number), self.name(number))
            except FileError as error:
                self.reader.fail(error)
        raise FileError(self.name(0) if len(self) else "records", "no image can be read")


def in_grey(records: Records) -> Records:
    """Records for a net of one channel: images that nobody wants in colour are read in grey."""
    if isinstance(records, Pictures) and records.reader.may_be_grey:
        return records.in_grey()
    if isinstance(records, Chain):
        return Chain([in_grey(part) for part in records.parts])
    if isinstance(records, Subset):
        return Subset(in_grey(records.records), records.indices)
    return records
