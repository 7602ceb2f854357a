"""Nets from Caffe's files: readNetFromCaffe, readNet and shrinkCaffeModel."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sparknet.errors import SpecError
from sparknet.opencv.importer import Source, read_network
from sparknet.opencv.net import Net
from sparknet.proto import read_model, write_model

StrPath = str | os.PathLike[str]

SUFFIXES = (".caffemodel", ".prototxt")


def readNetFromCaffe(prototxt: Source, caffeModel: Source | None = None) -> Net:
    """Return a net from a prototxt and a caffemodel: their names, or their contents."""
    return Net(read_network(prototxt, caffeModel))


def readNet(model: Any, config: Any = "", framework: Any = "") -> Net:
    """Return a net from Caffe's files in either order, or from "caffe" and two buffers."""
    if not is_caffe(model, config, framework):
        raise SpecError(f"readNet: {model!r} and {config!r} are not Caffe's files")
    if not isinstance(config, str | os.PathLike):
        return readNetFromCaffe(framework, config)
    first, second = os.fspath(model), os.fspath(config)
    if first.endswith(".prototxt") or second.endswith(".caffemodel"):
        first, second = second, first
    return readNetFromCaffe(second, first)


def is_caffe(model: Any, config: Any = "", framework: Any = "") -> bool:
    """Return whether `readNet` with these arguments means Caffe."""
    if not isinstance(config, str | os.PathLike):
        return str(model).lower() == "caffe"
    names = (os.fspath(model), os.fspath(config))
    return str(framework).lower() == "caffe" or any(name.endswith(SUFFIXES) for name in names)


def shrinkCaffeModel(
    src: StrPath,
    dst: StrPath,
    layersTypes: Sequence[str] = (),
) -> None:
    """Write a caffemodel with weights of half the size, of these types of layers."""
    write_model(dst, read_model(src), half=layersTypes or ("Convolution", "InnerProduct"))
