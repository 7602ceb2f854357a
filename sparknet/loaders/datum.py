"""Datum: one labelled item, as Caffe's databases store it."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparknet.errors import FileError
from sparknet.loaders.image import image_shape
from sparknet.proto import caffe_pb2

LARGEST = 2**31 - 1


def parse_datum(value: bytes, source: str, key: object) -> Any:
    """The Datum in a record; ``source`` and ``key`` say where it came from."""
    datum = caffe_pb2.Datum()
    try:
        datum.ParseFromString(value)
    except Exception as error:
        raise FileError(source, f"record {key!r} is no Datum") from error
    return datum


def stored_shape(
    datum: Any, source: str, key: object, color: bool | None = None
) -> tuple[int, int, int]:
    """Channels, height and width; of an encoded image those after decoding.

    ``color`` forces an encoded image to colour or grey (Caffe: data_transformer.cpp,
    InferBlobShape).
    """
    if datum.encoded:
        channels, height, width = image_shape(datum.data, f"{source}, record {key!r}")
        return (channels if color is None else 3 if color else 1), height, width
    shape: tuple[int, int, int] = (datum.channels, datum.height, datum.width)
    check_size(datum, shape, source, key)
    return shape


def check_size(datum: Any, shape: tuple[int, int, int], source: str, key: object) -> None:
    """Refuse a record whose bytes or floats do not fit its shape."""
    channels, height, width = shape
    values = len(datum.data) or len(datum.float_data)
    expected = channels * height * width
    if min(shape) < 0 or expected > LARGEST or values != expected:
        raise FileError(
            source,
            f"record {key!r} says {channels} x {height} x {width} and holds {values} values",
        )


def datum_bytes(pixels: Any, label: int | None = None) -> bytes:
    """An image of channels x height x width bytes, or of other numbers, as a record."""
    channels, height, width = pixels.shape
    datum = caffe_pb2.Datum(channels=channels, height=height, width=width, label=label)
    if pixels.dtype == np.uint8:
        datum.data = pixels.tobytes()
    else:
        datum.float_data.extend(pixels.ravel().tolist())
    return datum.SerializeToString()


def encoded_bytes(image: bytes, label: int) -> bytes:
    """A compressed image as a record."""
    return caffe_pb2.Datum(data=image, label=label, encoded=True).SerializeToString()
