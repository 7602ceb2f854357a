"""Small databases and image files, and nets over them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import sparknet.caffe as caffe
from sparknet.cli.record_files import write_database
from sparknet.loaders.datums import datum_bytes
from sparknet.proto import caffe_pb2, parse_net

Pixels = Any


def source(kind: str, tops: int = 2, **params: str) -> str:
    """A layer ``src`` of some kind with tops data and label."""
    names = "".join(f"top: '{name}' " for name in ("data", "label")[:tops])
    parts = " ".join(f"{name} {{ {text} }}" for name, text in params.items())
    return f"layer {{ name: 'src' type: '{kind}' {names} {parts} }}"


def net(text: str, phase: int = caffe.TEST, seed: int = 1) -> caffe.Net:
    return caffe.Net.from_proto(parse_net(text), phase, seed=seed)


def passes(made, count, blob="data"):
    """A blob after each of some passes."""
    return np.stack([(made.forward(), made.blobs[blob].data.copy())[1] for _ in range(count)])


def images(count: int, *shape: int, seed: int = 0) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (count, *shape)).astype(np.uint8)


def database(folder: Path, records: Iterable[bytes]) -> str:
    path = str(folder / "db")
    pairs = ((b"%05d" % number, value) for number, value in enumerate(records))
    write_database(path, pairs)
    return path


def of_images(folder: Path, pixels: Pixels) -> str:
    return database(folder, (datum_bytes(image, label) for label, image in enumerate(pixels)))


def lmdb(path: str, batch: int, transform: str = "", tops: int = 2, **more: str) -> str:
    options = f"source: '{path}' backend: LMDB batch_size: {batch}"
    return source("Data", tops, data_param=options, transform_param=transform, **more)


def datum(**fields):
    return caffe_pb2.Datum(**fields).SerializeToString()
