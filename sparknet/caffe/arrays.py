"""BlobProto and Datum messages from arrays and back, without Python lists of floats."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from sparknet.errors import ArrayError
from sparknet.proto import caffe_pb2
from sparknet.proto.blob_file import RAW
from sparknet.proto.byte_source import ByteSource
from sparknet.proto.wire import Piece, header, load, walk

Array = npt.NDArray[Any]

FLOAT_DATA = 6
"""Datum.float_data, which Caffe writes unpacked: a tag byte before each float."""


def array_to_blobproto(arr: Array, diff: Array | None = None) -> caffe_pb2.BlobProto:
    """Return a BlobProto of the shape and numbers of `arr`, with `diff` as its gradient."""
    parts = [_packed(5, arr)]
    if diff is not None:
        parts.append(_packed(6, diff))
    blob = caffe_pb2.BlobProto.FromString(b"".join(parts))
    blob.shape.dim.extend(arr.shape)
    return blob


def blobproto_to_array(blob: caffe_pb2.BlobProto, return_diff: bool = False) -> Array:
    """Return the numbers of a blob, or of its gradient, as float64 in the blob's shape."""
    name = "diff" if return_diff else "data"
    if raw := getattr(blob, f"raw_{name}"):
        kind = RAW.get(getattr(blob, f"raw_{name}_type"))
        if kind is None or len(raw) % np.dtype(kind).itemsize:
            raise ArrayError(f"the raw {name} of this BlobProto are {len(raw)} bytes, no numbers")
        return _reshaped(np.frombuffer(raw, kind).astype(np.float64), _shape(blob), "BlobProto")
    source = ByteSource(blob.SerializeToString(), "BlobProto")
    payload = walk(source, None)[1][0]
    if not payload.count(name):
        name = f"double_{name}"
    flat = np.empty(payload.count(name), np.float32)
    load(source, payload.pieces.get(name, []), flat)
    return _reshaped(flat.astype(np.float64), _shape(blob), "BlobProto")


def arraylist_to_blobprotovector_str(arraylist: Iterable[Array]) -> bytes:
    """Return a serialized BlobProtoVector of the arrays."""
    vector = caffe_pb2.BlobProtoVector()
    vector.blobs.extend(array_to_blobproto(array) for array in arraylist)
    return vector.SerializeToString()


def blobprotovector_str_to_arraylist(str: bytes) -> list[Array]:
    """Return the arrays of a serialized BlobProtoVector."""
    vector = caffe_pb2.BlobProtoVector.FromString(str)
    return [blobproto_to_array(blob) for blob in vector.blobs]


def array_to_datum(arr: Array, label: int | None = None) -> caffe_pb2.Datum:
    """Return a Datum of a (channels, height, width) array: bytes where it is uint8, else floats."""
    if arr.ndim != 3:
        raise ArrayError(f"a datum takes a 3-dimensional array, not one of shape {arr.shape}")
    if arr.dtype == np.uint8:
        datum = caffe_pb2.Datum(data=arr.tobytes())
    else:
        datum = caffe_pb2.Datum.FromString(_packed(FLOAT_DATA, arr))
    datum.channels, datum.height, datum.width = arr.shape
    if label is not None:
        datum.label = int(label)
    return datum


def datum_to_array(datum: caffe_pb2.Datum) -> Array:
    """Return the (channels, height, width) array of a datum: uint8 of bytes, float64 of floats."""
    if datum.encoded:
        raise ArrayError("the datum holds an encoded image: decode datum.data with an image reader")
    shape = (datum.channels, datum.height, datum.width)
    if datum.data:
        flat: Array = np.frombuffer(datum.data, np.uint8).copy()
    else:
        flat = _float_data(datum)
    return _reshaped(flat, shape, "Datum")


def _packed(number: int, array: Array) -> bytes:
    payload = np.ascontiguousarray(array, np.dtype("<f4")).tobytes()
    return header(number, len(payload)) + payload


def _float_data(datum: caffe_pb2.Datum) -> Array:
    count = len(datum.float_data)
    flat = np.empty(count, np.float32)
    if count:
        # The serializer writes fields by number; only the few of a Datum's head come before.
        bare = caffe_pb2.Datum()
        bare.float_data.MergeFrom(datum.float_data)
        source = ByteSource(bare.SerializeToString(), "Datum")
        load(source, [Piece(0, count, 1, 4)], flat)
    return flat.astype(np.float64)


def _shape(blob: caffe_pb2.BlobProto) -> tuple[int, ...]:
    if any(blob.HasField(name) for name in ("num", "channels", "height", "width")):
        return (blob.num, blob.channels, blob.height, blob.width)
    return tuple(blob.shape.dim)


def _reshaped(flat: Array, shape: tuple[int, ...], what: str) -> Array:
    if min(shape, default=0) < 0 or math.prod(shape) != len(flat):
        raise ArrayError(f"the {what} says shape {shape} but holds {len(flat)} numbers")
    return flat.reshape(shape)
