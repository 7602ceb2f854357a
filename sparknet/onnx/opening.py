"""Models of either kind: a caffemodel or an ONNX model, told by the name's ending."""

from __future__ import annotations

from sparknet import proto
from sparknet.onnx.reading import converted
from sparknet.onnx.source import StrPath, is_onnx
from sparknet.proto import Model


def open_model(path: StrPath) -> Model:
    """The net and the weights of a .onnx, or what `sparknet.read_model` reads."""
    return converted(path) if is_onnx(path) else proto.read_model(path)
