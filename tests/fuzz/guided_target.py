"""One target of tests/fuzz/guided.py, by Atheris: python -m tests.fuzz.guided_target KIND OPTIONS

OPTIONS are libFuzzer's.  What is refused by a SparkNetError is no finding.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

if "with_fuzzer" in os.environ.get("LD_PRELOAD", ""):  # libFuzzer comes with the sanitizers
    import atheris_no_libfuzzer as atheris
else:
    import atheris

with atheris.instrument_imports(include=["sparknet"], enable_loader_override=False):
    from sparknet.cli.convert_target import write_database
    from sparknet.errors import SparkNetError
    from sparknet.loaders import open_records
    from sparknet.loaders.snappy import decompress
    from sparknet.loaders.transform import Transform
    from sparknet.net import Net
    from sparknet.proto import caffe_pb2, parse_net
    from tests.fuzz.readers import check


def name_for(kind: str) -> str:
    return "input.h5" if kind.endswith("h5") else "input"


def snappy(data: bytes) -> None:
    with suppress(ValueError, SparkNetError):
        decompress(data)


def datum(data: bytes) -> None:
    """As a record of a database."""
    with tempfile.TemporaryDirectory() as folder, suppress(SparkNetError):
        path = str(Path(folder, "records"))
        write_database(path, "lmdb", [(b"0", data), (b"1", data[::-1])])
        records = open_records(path, kind="datums", backend="lmdb")
        records.take(range(len(records)))


def transform(data: bytes) -> None:
    """A TransformationParameter, and an image of any shape."""
    given = atheris.FuzzedDataProvider(data)
    shape = [given.ConsumeIntInRange(0, 12) for _ in range(given.ConsumeIntInRange(0, 5))]
    dtype = given.PickValueInList(["u1", "i1", "f4", "f8", ">f4", "?"])
    first = given.ConsumeIntInRange(0, 1 << 40)
    parameter, phase = caffe_pb2.TransformationParameter(), given.ConsumeIntInRange(0, 1)
    parameter.scale, parameter.mirror = given.ConsumeFloat(), given.ConsumeBool()
    parameter.crop_size = given.ConsumeIntInRange(0, 20)
    parameter.mean_value.extend(given.ConsumeFloatListInRange(3, -1e9, 1e9))
    with suppress(SparkNetError):
        Transform(parameter, phase)(np.ones(shape, dtype), first)


def net_built(data: bytes) -> None:
    """A net that is built from what may be a prototxt, and run once."""
    with suppress(SparkNetError):
        net = parse_net(data.decode("utf-8", "replace"))
        if _is_small(net):
            built = Net(net)
            built.net.forward()


def _is_small(net: object) -> bool:
    """Neither files nor code, nor numbers that ask for gigabytes."""
    text = str(net)
    numbers = (int(word) for word in text.split() if word.isdigit())
    names = ("Data", "Python", "HDF5", "source", "mean_file", "shape_file")
    return max(numbers, default=0) < 64 and not any(name in text for name in names)


NATIVE: dict[str, Callable[[bytes], None]] = {
    "net_built": net_built,
    "transform": transform,
    "datum": datum,
    "snappy": snappy,
}


def reading(kind: str, folder: str) -> Callable[[bytes], None]:
    path = Path(folder, name_for(kind))

    def read(data: bytes) -> None:
        path.write_bytes(data)
        check(kind, path)

    return read


def main() -> None:
    kind, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        target = NATIVE[kind] if kind in NATIVE else reading(kind, folder)
        atheris.Setup([sys.argv[0], *options], target)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
