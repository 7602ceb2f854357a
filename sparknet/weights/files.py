"""Weights in caffemodels and HDF5 files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, WeightsError
from sparknet.proto import Model, caffe_pb2, write_model
from sparknet.weights.layout import Layout, Layouts, Span

_TORCH = "name it .caffemodel, or torch.save what sparknet.weights.state_dict makes"
_OTHERS = {
    ".pt": _TORCH,
    ".pth": _TORCH,
    ".ckpt": _TORCH,
    ".hdf5": "name it .h5 for HDF5, or .caffemodel",
    ".onnx": "name it .caffemodel, or write it by sparknet.onnx",
    ".safetensors": "name it .caffemodel, or write it by `sparknet convert`",
    **dict.fromkeys(
        (".npz", ".npy", ".pb", ".pkl", ".prototxt", ".keras", ".tflite"), "name it .caffemodel"
    ),
}
"""Suffix → the cure, for formats that are not written here."""
StrPath = str | os.PathLike[str]
Array = np.ndarray[Any, Any]


def read_weights(path: StrPath) -> tuple[Layout, dict[str, list[Array]]]:
    """The layout of a file's weights, and each layer's arrays.

    Parameters of the same name are shared.  Of layers of the same name the last one counts, as in
    Caffe.
    """
    from sparknet.onnx import open_model

    model = open_model(path)
    pairs = zip(model.net.layer, model.arrays, strict=True)
    layers = {layer.name: (layer, arrays) for layer, arrays in pairs if arrays}
    layouts, found = Layouts(), dict[str, list[Array]]()
    for name, (layer, arrays) in layers.items():
        held = [array for array in arrays if array is not None]
        if len(held) < len(arrays):
            raise WeightsError(
                name,
                f"{os.fspath(path)} holds some of its parameters under another layer's name: "
                "load it into a net",
            )
        keys = [spec.name or None for spec in layer.param]
        keys += [None] * (len(held) - len(keys))
        layouts.add(name, layer.type, [array.shape for array in held], keys[: len(held)])
        found[name] = held
    return layouts.done(), found


DESCRIPTION, WEIGHTS = "model.json", "weights.caffemodel"
"""Names in the folder of a saved model."""


def is_model_folder(path: object) -> bool:
    """Whether it is the path of a saved model's folder on this machine."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    try:
        return (Path(path) / DESCRIPTION).is_file()
    except (OSError, ValueError):  # the text of a prototxt
        return False


def prepare(path: StrPath) -> str:
    """Make the folder of a file of weights; FileError for a name of another format."""
    name = os.fspath(path)
    if cure := _OTHERS.get(Path(name).suffix.lower()):
        raise FileError(name, f"would be a caffemodel by another name: {cure}")
    with suppress(OSError):  # the writer says what is wrong
        Path(name).parent.mkdir(parents=True, exist_ok=True)
    return name


def write_weights(path: StrPath, layout: Layout, arrays: Sequence[Sequence[Array]]) -> None:
    """Write a caffemodel of only weights; HDF5 if the name ends in .h5."""
    net, owners = caffe_pb2.NetParameter(), dict[Span, str]()
    for layer in layout.layers:
        written = net.layer.add(name=layer.name, type=layer.type)
        for index, span in enumerate(layer.spans):
            # Readers, and the HDF5 writer, find shared parameters by their names.
            written.param.add(name=owners.setdefault(span, f"{layer.name}/{index}"))
    write_model(prepare(path), Model(net, [list(own) for own in arrays]))
