"""Native code that computes with what files say: nets that are built, records, images."""

import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from sparknet.cli.record_files import write_database
from sparknet.loaders import open_records
from sparknet.loaders.leveldb_table import decompress
from sparknet.loaders.transform import Transform
from sparknet.net import Net
from sparknet.proto import caffe_pb2, parse_net


def snappy(data: bytes) -> None:
    with suppress(ValueError):
        decompress(data)


def datum(data: bytes) -> None:
    """As a record of a database."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "records"))
        write_database(path, [(b"0", data), (b"1", data)])
        records = open_records(path, kind="datums", backend="lmdb")
        records.take(range(len(records)))


def transform(data: bytes) -> None:
    """A TransformationParameter, and an image of any shape."""
    given = Numbers(data)
    shape = [given.integer(0, 12) for _ in range(given.integer(0, 5))]
    dtype = ["u1", "i1", "f4", "f8", ">f4", "?"][given.integer(0, 5)]
    first = given.integer(0, 1 << 40)
    parameter, phase = caffe_pb2.TransformationParameter(), given.integer(0, 1)
    parameter.scale, parameter.mirror = given.real(), bool(given.integer(0, 1))
    parameter.crop_size = given.integer(0, 20)
    parameter.mean_value.extend(given.real() for _ in range(given.integer(0, 3)))
    Transform(parameter, phase)(np.ones(shape, dtype), first)


class Numbers:
    """Numbers that are made from bytes, zeros at their end."""

    def __init__(self, data: bytes) -> None:
        self._rest = data

    def _taken(self, count: int) -> bytes:
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken.ljust(count, b"\0")

    def integer(self, low: int, high: int) -> int:
        width = ((high - low).bit_length() + 7) // 8
        return low + int.from_bytes(self._taken(width), "little") % (high - low + 1)

    def real(self) -> float:
        return float(struct.unpack("<f", self._taken(4))[0])


def net_built(data: bytes) -> None:
    """A net that is built from what may be a prototxt, and run forward and backward once."""
    net = parse_net(data.decode("utf-8", "replace"))
    if is_small(net) and not any(word in str(net) for word in OUTSIDE):
        built = Net(net, keep_blobs=True).net
        built.forward()
        built.backward()


OUTSIDE = ("Data", "Python", "HDF5", "source", "mean_file", "shape_file")
"""Words of nets that read files or run code."""


def is_small(net):
    """Whether no number asks for gigabytes."""
    numbers = (int(word) for word in str(net).split() if word.isdigit())
    return max(numbers, default=0) < 64


TARGETS: dict[str, Callable[[bytes], None]] = {
    "net_built": net_built,
    "transform": transform,
    "datum": datum,
    "snappy": snappy,
}


def on_file(target: Callable[[bytes], None]) -> Callable[[Path], None]:
    return lambda path: target(path.read_bytes())
