"""Drawn images of several sizes and kinds, as files."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

SIZES = [(30, 40), (64, 33), (32, 32), (24, 90), (10, 15)]
KINDS = ["RGB", "L", "RGBA", "LA", "P", "CMYK", "16 bit", "turned"]


def pixels(height, width, channels, seed=0):
    """Smooth bytes, height x width x channels."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng([seed, height, width])
    coarse = rng.integers(0, 256, (8, 8, channels)).astype(np.uint8)
    planes = [
        np.asarray(image.fromarray(plane).resize((width, height), image.Resampling.BICUBIC))
        for plane in coarse.transpose(2, 0, 1)
    ]
    return np.stack(planes, 2)


def encoded(kind: str, height: int, width: int, seed: int = 0) -> bytes:
    """An image file of a kind: JPEG where it can be, else PNG."""
    image = pytest.importorskip("PIL.Image")
    drawn = pixels(height, width, 4, seed)
    file = io.BytesIO()
    if kind == "16 bit":
        deep = drawn[..., 0].astype(np.uint16) * 257 - drawn[..., 1]
        image.fromarray(deep.astype(np.uint16)).save(file, "png")
    elif kind == "turned":
        exif = image.Exif()
        exif[274] = 6
        image.fromarray(drawn[..., :3]).save(file, "jpeg", exif=exif)
    elif kind == "CMYK":
        image.fromarray(drawn, "CMYK").save(file, "jpeg")
    else:
        made = image.fromarray(drawn) if kind in ("RGBA", "LA") else image.fromarray(drawn[..., :3])
        made.convert(kind).save(file, "jpeg" if kind in ("RGB", "L") else "png")
    return file.getvalue()


def files(folder: Path) -> Iterator[Path]:
    """Files of all kinds and sizes, in the order of their names."""
    for number, (kind, (height, width)) in enumerate(
        (kind, size) for size in SIZES for kind in KINDS
    ):
        data = encoded(kind, height, width, number)
        suffix = "jpg" if data.startswith(b"\xff\xd8") else "png"
        path = folder / f"{number:02} {kind}.{suffix}"
        path.write_bytes(data)
        yield path
