"""ImageArrays: images of any size and kind as arrays of one, as a description says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparknet.errors import DataError, FileError, OutOfMemory, SparkNetError, clean
from sparknet.loaders.image_decoding import (
    LUMINANCE,
    SHARED,
    Part,
    check_size,
    eight_bits,
    limit,
    open_image,
    pixels_of,
    plain_pixels,
    recolored,
    reduce_jpeg,
    upright_size,
)
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.loaders.resize import resize, resize_picture
from sparknet.loaders.stopwatch import timed

Array = np.ndarray[Any, Any]
Size = tuple[int, int]
Found = Array | SparkNetError
"""An image's array, or why it has none."""


class ImageArrays:
    """Makes arrays of images: channels x height x width, in the order that `how` says.

    `how` is done up to the crop, which is left to `Transformation`, as it is random in training.
    Values run from 0 to 255, bytes where the library has bytes.  Without a size to resize to,
    images are cut to the crop, unless in `training`, where images are kept: as bytes, rounded.
    """

    def __init__(self, how: Preprocessing, channels: int, training: bool = False) -> None:
        how.check_channels(channels)
        self.how, self.channels, self._rounds = how, channels, training
        self._cut = None if training or how.resize is not None else how.crop

    def all(self, images: Any, name: Callable[[int], str]) -> list[Found]:
        """Return the arrays of a list of encoded images (bytes or paths), several at a time, or
        their errors.

        ``name(number)`` is an image's name in its error.
        """
        return self.map(lambda number: self.of_file(images[number], name(number)), len(images))

    def map(self, make: Callable[[int], Array], count: int) -> list[Found]:
        """make(number) for each, or its error."""

        def tried(number: int) -> Found:
            try:
                return make(number)
            except OutOfMemory:
                raise
            except SparkNetError as error:
                return error

        return SHARED.map(tried, range(count))

    # -- one image -------------------------------------------------------------------------

    def of_file(self, image: str | bytes | None, name: str) -> Array:
        """Return an encoded image, or its path."""
        if image is None:
            raise DataError(f"{name} is null")
        with open_image(image, name) as picture:
            check_size(picture, name)
            try:
                return self._as_bytes(self._decoded(picture, name))
            except (SparkNetError, MemoryError):
                raise
            except Exception as error:  # Pillow raises many a builtin one for a damaged file
                raise FileError(name, f"is a damaged image: {clean(error)}") from error

    def of_pixels(self, pixels: Array, name: str) -> Array:
        """Height x width x channels: grey, or blue, green and red, with alpha or not."""
        if pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4):
            sizes = " x ".join(map(str, pixels.shape))
            raise DataError(f"{name} is {sizes}, no image of 1, 3 or 4 channels")
        is_whole = pixels.dtype in (np.uint8, np.uint16)
        if pixels.dtype == np.uint16:
            pixels = self._without_depth(pixels, 65535.0)
        elif not is_whole:
            pixels = pixels.astype(np.float32)
        planes = pixels[:, :, 2::-1] if pixels.shape[2] > 1 else pixels[:, :, 0]
        array = self._sized(self._recolored(planes), name, self.how.color != "rgb")
        return self._as_bytes(array) if is_whole else array

    def of_planes(self, planes: Array) -> Array:
        """Channels x height x width as the net has them: only the size is changed."""
        pixels = planes.transpose(1, 2, 0)
        if pixels.dtype != np.uint8:
            pixels = pixels.astype(np.float32, copy=False)
        if pixels.shape[2] == 1:
            pixels = pixels[:, :, 0]
        return self._sized(pixels, "an image", swapped=False)

    def of_raw(self, planes: Array) -> Array:
        """Return the same, kept as the other images are."""
        array = self.of_planes(planes)
        return self._as_bytes(array) if planes.dtype == np.uint8 else array

    # -- reading ---------------------------------------------------------------------------

    def _decoded(self, picture: Any, name: str) -> Array:
        """Return the planes of a picture, of a JPEG in no more detail than its new size needs."""
        upright, part = self.how.upright, None
        size = upright_size(picture, upright) if self.how.resize is not None else None
        inner = None if size is None else self.how.inner_size(size, name)
        with timed("decoding"):
            if inner is not None and not self.how.is_exact:
                color = self.channels == 3 or self.how.library != "cv2"
                part = reduce_jpeg(picture, inner, color, upright)
            if upright:
                from PIL import ImageOps

                picture = ImageOps.exif_transpose(picture)
            pixels = self._read(picture, name)
        with timed("resizing"):
            if inner is not None and self.how.library == "pil":
                pixels = resize_picture(pixels, inner, self.how.way, part)
            return self._sized(np.asarray(pixels), name, self.how.color != "rgb", inner, part)

    def _read(self, picture: Any, name: str) -> Any:
        """Height x width of grey, or height x width x 3 of red, green and blue.

        Where Pillow resizes it is Pillow's picture.
        """
        color = self.channels == 3
        if self.how.library == "cv2":
            return pixels_of(picture, name, color)
        if self.how.library == "pil":
            mode = "RGB" if color else "L"
            picture = eight_bits(picture)
            picture.load()
            return picture if picture.mode == mode else picture.convert(mode)
        pixels = plain_pixels(picture)
        if pixels.dtype != np.uint8:
            pixels = self._without_depth(pixels, limit(pixels, name))
        return self._recolored(pixels)

    def _without_depth(self, pixels: Array, white: float) -> Array:
        """Values from 0 to 255: caffe.io keeps fractions, OpenCV drops the lower bits."""
        floats: Array = pixels.astype(np.float64) * (255.0 / white)
        exact: Array = floats.astype(np.float32)
        if self.how.library == "caffe":
            return exact
        dropped: Array = (pixels >> 8).astype(np.uint8)
        return dropped

    def _recolored(self, pixels: Array) -> Array:
        if self.channels == 3:
            return pixels if pixels.ndim == 3 else np.repeat(pixels[:, :, None], 3, 2)
        if pixels.ndim == 2:
            return pixels
        if self.how.library == "caffe" or pixels.dtype != np.uint8:
            grey: Array = np.dot(pixels, LUMINANCE).astype(np.float32)
            return grey
        planes: Array = pixels.transpose(2, 0, 1)[::-1]
        return np.asarray(recolored(planes, False)[0])

    def _as_bytes(self, planes: Array) -> Array:
        if not self._rounds or planes.dtype == np.uint8:
            return planes
        rounded: Array = np.clip(np.rint(planes), 0, 255).astype(np.uint8)
        return rounded

    # -- sizing ----------------------------------------------------------------------------

    def _sized(
        self,
        pixels: Array,
        name: str,
        swapped: bool,
        inner: Size | None = None,
        part: Part | None = None,
    ) -> Array:
        """Resized, with channels first; red and blue change places if ``swapped``."""
        if self.how.resize is not None:
            inner = inner or self.how.inner_size(pixels.shape[:2], name)
            pixels = self.how.crop_resized(resize(pixels, inner, self.how.way, part))
        elif self._cut is not None:
            pixels = _middle(pixels, self._cut, name)
        planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
        planes = planes[::-1] if swapped and len(planes) == 3 else planes
        size = self.how.resize
        if size is None or planes.shape[1:] == size:
            return np.ascontiguousarray(planes)
        return self._padded(planes, size)

    def _padded(self, planes: Array, size: Size) -> Array:
        pad = np.asarray(self.how.pad).reshape(-1, 1, 1)
        out = np.empty((len(planes), *size), planes.dtype)
        out[...] = pad if out.dtype != np.uint8 else np.clip(np.rint(pad), 0, 255)
        # Pillow's ImageOps.pad centres so.
        top, left = (
            round((whole - inner) / 2) for whole, inner in zip(size, planes.shape[1:], strict=True)
        )
        out[:, top : top + planes.shape[1], left : left + planes.shape[2]] = planes
        return out


def stacked(found: Sequence[Array]) -> Array:
    """Return one array of arrays of one shape; float32 where some are."""
    kind = np.uint8 if all(one.dtype == np.uint8 for one in found) else np.float32
    out = np.empty((len(found), *found[0].shape), kind)
    with timed("copies", out.nbytes):
        for row, one in zip(out, found, strict=True):
            row[...] = one
    return out


def _middle(pixels: Array, size: Size, name: str) -> Array:
    (height, width), (rows, columns) = pixels.shape[:2], size
    if rows > height or columns > width:
        raise DataError(
            f"{name} is {height} x {width}, smaller than the crop of {rows} x {columns}: "
            "give resize, too"
        )
    top, left = (height - rows) // 2, (width - columns) // 2
    return pixels[top : top + rows, left : left + columns]
