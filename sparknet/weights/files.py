"""Files of weights: reading them, and copying them into layers of the same names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sparknet.errors import FileError, WeightsError, clean, warn
from sparknet.proto import Model, caffe_pb2, write_model
from sparknet.proto.model import WeightsWarning
from sparknet.weights.layout import Layout, Layouts, Span

_TORCH = "name it .caffemodel, or torch.save what sparknet.weights.safetensors makes"
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
    """Return the layout of a file's weights, and each layer's arrays; the last of a name counts."""
    from sparknet.onnx import open_model

    model = open_model(path)
    pairs = zip(model.net.layer, model.arrays, strict=True)
    layers = {layer.name: (layer, arrays) for layer, arrays in pairs if arrays}
    layouts, blobs = Layouts(), dict[str, list[Array]]()
    for name, (layer, arrays) in layers.items():
        own = [array for array in arrays if array is not None]
        if len(own) < len(arrays):
            raise WeightsError(
                name,
                f"{os.fspath(path)} holds some of its parameters under another layer's name: "
                "load it into a net",
            )
        keys = [spec.name or None for spec in layer.param]
        keys += [None] * (len(own) - len(keys))
        layouts.add(name, layer.type, [array.shape for array in own], keys[: len(own)])
        blobs[name] = own
    return layouts.done(), blobs


DESCRIPTION, WEIGHTS = "model.json", "weights.caffemodel"
"""Names in the folder of a saved model."""


def is_model_folder(path: object) -> bool:
    """Return whether it is the path of a saved model's folder on this machine."""
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
        message = net.layer.add(name=layer.name, type=layer.type)
        for index, span in enumerate(layer.spans):
            # Readers, and the HDF5 writer, find shared parameters by their names.
            message.param.add(name=owners.setdefault(span, f"{layer.name}/{index}"))
    write_model(prepare(path), Model(net, [list(own) for own in arrays]))


Opened = Mapping[str, Model]
"""Files of weights, by their paths; later ones override earlier."""
NOTHING: Opened = {}

_MOST = 5
"""Names that a message lists."""


def copy_from(net: Any, *paths: StrPath) -> None:
    """Copy weights into a pycaffe net by layer name, as Caffe does; later files override earlier.

    Unlike in Caffe, a file with none of the layers is refused, and a warning names the layers that
    no file has, which keep their weights."""
    files = open_weights(paths)
    check_layers(net, files)
    copy_weights(net, files)


def open_weights(paths: Iterable[StrPath], known: Opened = NOTHING) -> Opened:
    """Read the files of weights, but for those that are known."""
    names = [
        os.path.join(path, WEIGHTS) if is_model_folder(path) else os.fspath(path)  # noqa: PTH118
        for path in paths
    ]
    if not names:
        return {}
    from sparknet.onnx import open_model  # as few programs need what reads ONNX

    return {name: known.get(name) or open_model(name) for name in names}


def copy_weights(net: Any, opened: Opened) -> None:
    """Copy weights into a pycaffe net; any but ours reads the files itself."""
    for path, model in opened.items():
        if hasattr(net, "copy_model"):
            net.copy_model(model)
        else:
            net.copy_from(path)


def check_layers(net: Any, opened: Opened) -> None:
    """Refuse a file with none of a net's layers; warn about layers that no file has."""
    layers = list(net.params)
    if not layers or not opened:
        return
    missing, unused = dict.fromkeys(layers), dict[str, None]()
    for path, model in opened.items():
        present = list(model.by_name())
        if not set(present).intersection(layers):
            contents = f"it has {_names(present)}" if present else "it has no weights"
            raise WeightsError(
                layers[0],
                f"{clean(path)} has no weights for this layer nor any other of the "
                f"net, which has {_names(layers)}; {contents}",
            )
        unused |= dict.fromkeys(name for name in present if name not in layers)
        for name in present:
            missing.pop(name, None)
    if lacking := _without_shared(net, missing):
        _warn(list(opened), lacking, list(unused))


def _without_shared(net: Any, missing: Iterable[str]) -> list[str]:
    """Return the layers whose parameters do not all belong to layers that are not missing."""
    apart = list(missing)
    owners = {
        _address(blob) for name in net.params if name not in apart for blob in net.params[name]
    }
    return [
        name for name in apart if not {_address(blob) for blob in net.params[name]}.issubset(owners)
    ]


def _address(blob: Any) -> int:
    return int(blob.data.__array_interface__["data"][0])


def _warn(paths: Sequence[str], missing: Sequence[str], unused: Sequence[str]) -> None:
    files = " and ".join(clean(path) for path in paths)
    message = f"{files}: no weights for {_names(missing)}, which keep those they begin with"
    if unused:
        message += f"; nothing takes those of {_names(unused)}"
    warn(message, WeightsWarning)


def _names(names: Iterable[str]) -> str:
    quoted = [f"'{clean(name)}'" for name in names]
    more = len(quoted) - _MOST
    return ", ".join(quoted[:_MOST]) + (f" and {more} more" if more > 0 else "")
