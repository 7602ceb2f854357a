"""Models of either kind: a caffemodel or an ONNX model, told by the name's ending."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from sparknet import proto
from sparknet.errors import FileError, SpecError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.onnx.converting import converted
from sparknet.onnx.inputs import Axes, Shapes
from sparknet.onnx.source import LABELS, PREPROCESSING, StrPath, is_onnx
from sparknet.proto import Model


def open_model(
    path: StrPath,
    *,
    shapes: Shapes | None = None,
    batch_axis: Axes | None = None,
    trusted: bool | None = None,
) -> Model:
    """The net and the weights of a .onnx, or what `sparknet.read_model` reads.

    `shapes`, `batch_axis` and `trusted` are for a .onnx, as for `read_model` there.
    """
    if is_onnx(path):
        return converted(path, 1, shapes, batch_axis, bool(trusted))
    refuse_axes(path, shapes, batch_axis)
    return proto.read_model(path)


def refuse_axes(path: StrPath, shapes: Shapes | None, batch_axis: Axes | None) -> None:
    """SpecError where the inputs of something else than a .onnx are described."""
    for name, said in (("shapes", shapes), ("batch_axis", batch_axis)):
        if said:
            raise SpecError(f"{os.fspath(path)}: {name} is for the inputs of a .onnx")


def preprocessing_of(model: Model, path: StrPath) -> Preprocessing | None:
    """What the metadata of a .onnx say about images."""
    text = model.told.get(PREPROCESSING)
    return None if text is None else Preprocessing.from_json(text, f"{path}: {PREPROCESSING}")


def labels_of(model: Model, path: StrPath) -> tuple[str, ...]:
    """The names of the classes in the metadata of a .onnx; none where they say none."""
    text = model.told.get(LABELS)
    if text is None:
        return ()
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        if isinstance(found, list) and all(isinstance(name, str) for name in found):
            return tuple(found)
    raise FileError(f"{path}: {LABELS}", "is no list of classes' names")
