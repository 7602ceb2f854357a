"""What the metadata of a .onnx say: preprocessing of images, and names of classes."""

from __future__ import annotations

import json
from contextlib import suppress

from sparknet.errors import FileError
from sparknet.loaders.preprocessing import Preprocessing
from sparknet.onnx.source import LABELS, PREPROCESSING, StrPath
from sparknet.proto import Model


def preprocessing_of(model: Model, path: StrPath) -> Preprocessing | None:
    """Return what the metadata of a .onnx say about images."""
    text = model.metadata.get(PREPROCESSING)
    return None if text is None else Preprocessing.from_json(text, f"{path}: {PREPROCESSING}")


def labels_of(model: Model, path: StrPath) -> tuple[str, ...]:
    """Return the names of the classes in the metadata of a .onnx; none where they say none."""
    text = model.metadata.get(LABELS)
    if text is None:
        return ()
    with suppress(ValueError, RecursionError):
        labels = json.loads(text)
        if isinstance(labels, list) and all(isinstance(name, str) for name in labels):
            return tuple(labels)
    raise FileError(f"{path}: {LABELS}", "is no list of classes' names")
