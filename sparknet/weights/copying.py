"""Copies weights from files into layers of the same names, and reports names that differ."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from sparknet.errors import WeightsError, shown
from sparknet.onnx import open_model
from sparknet.weights.files import StrPath

_MOST = 5
"""Names that a message lists."""


class WeightsWarning(UserWarning):
    """Some layers of a net were not found in the file of its weights."""


def copy_from(net: Any, *paths: StrPath) -> None:
    """Copy weights into a pycaffe net by layer name, as Caffe does; later files override earlier.

    Unlike in Caffe, a file with none of the layers is refused, and a warning names the layers that
    no file has, which keep their weights.
    """
    check_names(net, paths)
    for path in paths:
        net.copy_from(os.fspath(path))


def check_names(net: Any, paths: Sequence[StrPath]) -> None:
    """Refuse a file with none of a net's layers; warn about layers that no file has."""
    layers = list(net.params)
    if not layers or not paths:
        return
    missing, unused = dict.fromkeys(layers), dict[str, None]()
    for path in paths:
        held = list(open_model(path).by_name())
        if not set(held).intersection(layers):
            said = f"it has {_names(held)}" if held else "it has no weights"
            raise WeightsError(
                layers[0],
                f"{shown(os.fspath(path))} has no weights for this layer nor any other of the "
                f"net, which has {_names(layers)}; {said}",
            )
        unused |= dict.fromkeys(name for name in held if name not in layers)
        for name in held:
            missing.pop(name, None)
    if missing:
        _warn(paths, list(missing), list(unused))


def _warn(paths: Sequence[StrPath], missing: Sequence[str], unused: Sequence[str]) -> None:
    files = " and ".join(shown(os.fspath(path)) for path in paths)
    said = f"{files}: no weights for {_names(missing)}, which keep those they begin with"
    if unused:
        said += f"; nothing takes those of {_names(unused)}"
    warnings.warn(said, WeightsWarning, stacklevel=_outside())


def _names(names: Iterable[str]) -> str:
    quoted = [f"'{shown(name)}'" for name in names]
    more = len(quoted) - _MOST
    return ", ".join(quoted[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _outside() -> int:
    """The stack level, seen from `_warn`, of the caller outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("sparknet."):
        level, frame = level + 1, frame.f_back
    return level
