"""Image files: their shapes and pixels, lists of them, and decoding side by side."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from sparknet.errors import FileError, clean, extra
from sparknet.native import threads
from sparknet.native.transform import resize_image
from sparknet.proto.byte_source import check_is_file, open_file, read_file

Array = np.ndarray[Any, Any]

LUMINANCE = np.array([0.2125, 0.7154, 0.0721])
"""The weights of red, green and blue (ITU-R BT.709) that pycaffe's image reader uses."""

_LIMITS = {"b": 1.0, "u1": 255.0, "u2": 65535.0}


def plain_pixels(picture: Any) -> Array:
    """Height x width of grey, or height x width x 3 of red, green and blue, in their own type."""
    mode = _plain_mode(picture)
    pixels = np.asarray(picture if picture.mode == mode else picture.convert(mode))
    # Pillow's name for 16-bit grey.
    return pixels.astype(np.uint16) if _is_16_bit(pixels) else pixels


def limit(pixels: Array, name: object) -> float:
    """Return the number that stands for white: the largest of the type; 1 for floating numbers."""
    largest = _LIMITS.get(pixels.dtype.str[1:], 65535.0 if pixels.dtype == np.int32 else 1.0)
    if pixels.dtype.kind in "fi" and pixels.size:
        low, high = float(pixels.min()), float(pixels.max())
        if not (-largest <= low and high <= largest):
            raise FileError(name, "has pixel values outside the range that its type allows")
    return largest


def _is_16_bit(pixels: Array) -> bool:
    if pixels.dtype != np.int32 or not pixels.size:
        return False
    return bool(pixels.min() >= 0 and pixels.max() < 1 << 16)


def _plain_mode(image: Any) -> str:
    """Return the mode in which an image's numbers are grey or RGB."""
    mode: str = image.mode
    if mode == "P":
        low, high = image.getextrema()
        used = np.array(image.getpalette("RGB")).reshape(-1, 3)[low : high + 1]
        return "L" if (used == used[:, :1]).all() else "RGB"
    if mode in ("1", "L", "RGB", "F", "I") or mode.startswith("I;16"):
        return "L" if mode == "1" else mode
    return "RGB"


Pixels = np.ndarray[Any, np.dtype[np.uint8]]
Size = tuple[int, int]
Part = tuple[float, float]
"""A height and a width, of pixels and parts of them."""

FORMATS = ("JPEG", "PNG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
"""Pillow chooses by content, not by name, and lets Ghostscript run the program in an EPS file."""
LONGEST_LINE = 1 << 16
LARGEST = 1 << 26
"""Pixels; an image of more is a mistake or a trap."""
LARGEST_FILE = 1 << 30
MOST_SCANNED = 1 << 30
"""Pixels that the scans of a progressive JPEG may pass over: an encoder makes some ten scans."""
DEEP = ("I", "F", "I;16", "I;16B", "I;16L", "I;16N")
CHANNELS = {"1": 1, "L": 1, "I": 1, "F": 1, "I;16": 1, "I;16B": 1, "LA": 4, "RGBA": 4, "PA": 4}
"""Channels by PIL mode as OpenCV's unchanged decoding has them; any other mode is colour, 3."""

_LUMINANCE = np.array([7471, 38470, 19595], np.uint32)
"""The weights of blue, green and red in grey, in parts of 65,536."""


def image_shape(image: str | bytes, name: str | None = None) -> tuple[int, int, int]:
    """Channels, height and width of an image file or its bytes; the pixels are not decoded."""
    label = name or (image if isinstance(image, str) else "<bytes>")
    with open_image(image, label) as picture:
        width, height = picture.size
        return CHANNELS.get(picture.mode, 3), height, width


def open_image(image: str | bytes, name: str) -> Any:
    """Return an image whose header has been read."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        with extra("pillow", "images", "reading images"):
            raise
    if isinstance(image, str):
        try:
            check_is_file(image)
            image = read_file(image, LARGEST_FILE)
        except FileError as error:
            raise FileError(name, error.reason) from error
    try:
        picture = Image.open(io.BytesIO(image), formats=FORMATS)
        _check_scans(picture, image, name)
        return picture
    except (FileError, MemoryError):
        raise
    except UnidentifiedImageError as error:  # which names the object in memory
        raise FileError(name, "is no image that can be read") from error
    except Exception as error:
        raise FileError(name, f"is no image that can be read: {clean(error)}") from error


def _check_scans(picture: Any, data: bytes, name: str) -> None:
    """FileError for a progressive JPEG that passes over its pixels too often."""
    scans, (width, height) = data.count(b"\xff\xda"), picture.size
    if picture.format == "JPEG" and scans * width * height > MOST_SCANNED:
        raise FileError(
            name, f"has {scans} scans of {height} x {width} pixels, which take too long"
        )


def orientation(picture: Any, upright: bool) -> int:
    """Return EXIF's number for how an opened image is turned; 1 unless ``upright`` wants that."""
    return int(picture.getexif().get(274, 1)) if upright else 1


def upright_size(picture: Any, upright: bool) -> Size:
    """Return the height and width of an opened image, with ``upright`` as its EXIF data turn it."""
    width, height = picture.size
    return (width, height) if orientation(picture, upright) > 4 else (height, width)


def reduce_jpeg(picture: Any, size: Size, color: bool, upright: bool) -> Part | None:
    """Let libjpeg decode a half, a quarter or an eighth of a JPEG, no smaller than ``size``.

    Returns the height and width of the whole picture among the decoded pixels, whose last row and
    column it may not fill; None for other files.
    """
    turn, (height, width) = orientation(picture, upright), size
    if turn != 1 and any(side % 8 for side in picture.size):
        return None  # once turned it may not fill the first row
    reduced = picture.draft(
        None if color else "L", (height, width) if turn > 4 else (width, height)
    )
    return None if reduced is None or turn != 1 else (reduced[1][3], reduced[1][2])


def check_size(picture: Any, name: str) -> None:
    """FileError for an opened image of too many pixels."""
    width, height = picture.size
    if height * width > LARGEST:
        raise FileError(name, f"announces {height} x {width} pixels, which is too large")


def read_list(path: str) -> Iterator[tuple[str, int]]:
    """Yield the lines ``file label`` of an image list (Caffe: image_data_layer.cpp)."""
    for number, line in numbered_lines(path):
        name, _, label = line.rpartition(" ")
        try:
            if not name:
                raise ValueError
            yield name.strip(), int(label)
        except ValueError:
            table = "; read a table of numbers with pandas" if "," in line else ""
            raise FileError(
                path,
                f"line {number} is not a file name and a label, as in a list of images: "
                f"{clean(line[:40])!r}{table}",
            ) from None


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a list that are not empty, without spaces around them, counted from 1."""
    check_is_file(path)
    with io.TextIOWrapper(open_file(path), "utf-8", "surrogateescape") as lines:
        number = 0
        while line := lines.readline(LONGEST_LINE):
            number += 1
            if len(line) >= LONGEST_LINE:
                raise FileError(path, f"line {number} is too long")
            if line.strip():
                yield number, line.strip()


def decode(image: str | bytes, name: str, color: bool | None, size: Size | None = None) -> Pixels:
    """Return an image as channels x height x width bytes, channels in OpenCV's order: blue,
    green, red.

    ``color`` forces colour or grey; None: as stored (OpenCV: IMREAD_UNCHANGED).  ``size`` is a
    height and a width to resize to.
    """
    with open_image(image, name) as picture:
        try:
            pixels = pixels_of(picture, name, color)
        except (FileError, MemoryError):
            raise
        except Exception as error:
            raise FileError(name, f"is a damaged image: {clean(error)}") from error
    if size is not None:
        pixels = resize_image(pixels, *size)
    if pixels.ndim == 2:
        return pixels[np.newaxis]
    # RGB becomes BGR and RGBA BGRA, by looking at the same memory in another order.
    channels: Pixels = pixels.transpose(2, 0, 1)
    return channels[::-1] if len(channels) == 3 else channels[[2, 1, 0, 3]]


def recolored(planes: Pixels, color: bool) -> Pixels:
    """Planes of a decoded image (grey, BGR or BGRA) as `decode` makes them of its file."""
    if color:
        return planes[:3] if len(planes) >= 3 else np.repeat(planes, 3, axis=0)
    if len(planes) == 1:
        return planes
    # Pillow's luminance: libImaging/Convert.c, L24.
    weighed = np.tensordot(_LUMINANCE, planes[:3].astype(np.uint32), 1)
    grey: Pixels = ((weighed + 0x8000) >> 16).astype(np.uint8)
    return grey[np.newaxis]


def encode(pixels: Pixels, kind: str, name: str, quality: int = 95) -> bytes:
    """Return an image as `decode` gives it, as a file of a kind such as "png" or "jpg".

    The quality of JPEGs is OpenCV's unless another is given.
    """
    with extra("pillow", "images", "writing images"):
        from PIL import Image

    form = Image.registered_extensions().get(f".{kind}")
    if form not in Image.SAVE:
        raise FileError(name, f"cannot be encoded as '{kind}'")
    planes = pixels[0] if len(pixels) == 1 else pixels[::-1].transpose(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(planes)).save(file, form, quality=quality)
    return file.getvalue()


def pixels_of(picture: Any, name: str, color: bool | None) -> Pixels:
    """Height x width of grey, or height x width x 3 or 4, as OpenCV reads them."""
    if color is None:
        channels = CHANNELS.get(picture.mode, 3)
        if picture.mode in DEEP:
            raise FileError(name, "has more than 8 bits a value")
        mode = {1: "L", 3: "RGB", 4: "RGBA"}[channels]
    else:
        mode = "RGB" if color else "L"
        if not color:
            # A JPEG holds its luminance; OpenCV takes that (libjpeg: JCS_GRAYSCALE).
            picture.draft("L", picture.size)
    picture = eight_bits(picture)
    return np.asarray(picture if picture.mode == mode else picture.convert(mode), np.uint8)


def eight_bits(picture: Any) -> Any:
    """16 bits lose their lower half, as in OpenCV."""
    from PIL import Image

    if picture.mode not in DEEP:
        return picture
    if picture.mode == "F":
        values = np.clip(np.rint(np.asarray(picture)), 0, 255)
    else:
        values = np.clip(np.asarray(picture).astype(np.int64) >> 8, 0, 255)
    return Image.fromarray(values.astype(np.uint8))


A = TypeVar("A")
B = TypeVar("B")
MOST = 8


class Decoders:
    """A pool that starts at its first use."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """work(item) for each, in order."""
        count = min(threads(), MOST)
        if count < 2:
            return [work(item) for item in items]
        if self._pool is None or self._process != os.getpid():
            # A forked child has the pool, but not its threads.
            self._process = os.getpid()
            self._pool = ThreadPoolExecutor(count, "sparknet-decode")
        return list(self._pool.map(work, items))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


SHARED = Decoders()
"""For those who decode now and then: its threads stay."""
