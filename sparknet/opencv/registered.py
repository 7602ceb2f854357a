"""Layers that a program registers for a type (OpenCV: misc/python/pyopencv_dnn.hpp)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np

from sparknet.layers.user_layer import UserLayer
from sparknet.proto import caffe_pb2
from sparknet.proto.model import LayerArrays

_classes: dict[str, type] = {}
_waiting: dict[str, tuple[type, dict[str, Any], tuple[Any, ...]]] = {}
"""What layers of nets are made of, until they are set up."""
_keys = count()


def registerLayer(type: str, layerClass: type) -> None:
    """Let a class compute all layers of a type, of nets that run for the first time from now on."""
    _classes[type] = layerClass


def unregisterLayer(type: str) -> None:
    _classes.pop(type, None)


def is_registered(layer_type: str) -> bool:
    return layer_type in _classes


def python_layer(layer: caffe_pb2.LayerParameter, arrays: LayerArrays) -> caffe_pb2.LayerParameter:
    """Return the layer, or a Python layer in the place of one whose type is registered."""
    if layer.type not in _classes:
        return layer
    key = str(next(_keys))
    _waiting[key] = (_classes[layer.type], options(layer), tuple(arrays))
    python = caffe_pb2.LayerParameter(name=layer.name, type="Python")
    python.bottom.extend(layer.bottom)
    python.top.extend(layer.top)
    python.python_param.module, python.python_param.layer = __name__, RegisteredLayer.__name__
    python.python_param.param_str = key
    return python


def options(layer: caffe_pb2.LayerParameter) -> dict[str, Any]:
    """Return the fields of a layer's parameters that its text sets, by name."""
    values: dict[str, Any] = {}
    for field, message in layer.ListFields():
        if field.name.endswith("_param"):
            repeated = isinstance(message, Sequence)
            values.update(_fields(message[0] if repeated else message))
    return values


def _fields(message: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field, value in message.ListFields():
        items = list(value) if not hasattr(value, "ListFields") and _is_list(value) else [value]
        if field.enum_type:
            items = [field.enum_type.values_by_number[item].name for item in items]
        if field.message_type:
            values.update(_fields(items[0]))
        else:
            values[field.name] = items if len(items) > 1 else items[0]
    return values


def _is_list(value: Any) -> bool:
    return not isinstance(value, str | bytes | int | float)


class RegisteredLayer(UserLayer):
    """The Python layer that runs an object of a registered class."""

    def setup(self, bottom: Any, top: Any) -> None:
        kind, params, blobs = _waiting.pop(self.param_str)
        self._layer = kind(params, blobs)

    def reshape(self, bottom: Any, top: Any) -> None:
        shapes = self._layer.getMemoryShapes(tuple(tuple(blob.shape) for blob in bottom))
        for blob, shape in zip(top, shapes, strict=True):
            blob.reshape(*shape)

    def forward(self, bottom: Any, top: Any) -> None:
        outputs = self._layer.forward(tuple(blob.data for blob in bottom))
        for blob, output in zip(top, outputs, strict=True):
            np.copyto(blob.data, output, casting="unsafe")
