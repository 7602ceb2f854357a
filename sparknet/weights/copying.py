"""Copies weights from files into layers of the same names, and reports names that differ."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparknet.errors import WeightsError, outside, shown
from sparknet.proto import Model
from sparknet.proto.model import WeightsWarning
from sparknet.weights.files import WEIGHTS, StrPath, is_model_folder

Opened = Mapping[str, Model]
"""Files of weights, by their paths; later ones override earlier."""
NOTHING: Opened = {}

_MOST = 5
"""Names that a message lists."""


def copy_from(net: Any, *paths: StrPath) -> None:
    """Copy weights into a pycaffe net by layer name, as Caffe does; later files override earlier.

    Unlike in Caffe, a file with none of the layers is refused, and a warning names the layers that
    no file has, which keep their weights.
    """
    opened = open_weights(paths)
    check_layers(net, opened)
    copy_weights(net, opened)


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
        held = list(model.by_name())
        if not set(held).intersection(layers):
            said = f"it has {_names(held)}" if held else "it has no weights"
            raise WeightsError(
                layers[0],
                f"{shown(path)} has no weights for this layer nor any other of the "
                f"net, which has {_names(layers)}; {said}",
            )
        unused |= dict.fromkeys(name for name in held if name not in layers)
        for name in held:
            missing.pop(name, None)
    if lacking := _without_shared(net, missing):
        _warn(list(opened), lacking, list(unused))


def _without_shared(net: Any, missing: Iterable[str]) -> list[str]:
    """The layers whose parameters do not all belong to layers that are not missing."""
    apart = list(missing)
    given = {
        _address(blob) for name in net.params if name not in apart for blob in net.params[name]
    }
    return [
        name for name in apart if not {_address(blob) for blob in net.params[name]}.issubset(given)
    ]


def _address(blob: Any) -> int:
    return int(blob.data.__array_interface__["data"][0])


def _warn(paths: Sequence[str], missing: Sequence[str], unused: Sequence[str]) -> None:
    files = " and ".join(shown(path) for path in paths)
    said = f"{files}: no weights for {_names(missing)}, which keep those they begin with"
    if unused:
        said += f"; nothing takes those of {_names(unused)}"
    warnings.warn(said, WeightsWarning, stacklevel=outside())


def _names(names: Iterable[str]) -> str:
    quoted = [f"'{shown(name)}'" for name in names]
    more = len(quoted) - _MOST
    return ", ".join(quoted[:_MOST]) + (f" and {more} more" if more > 0 else "")
