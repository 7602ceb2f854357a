"""Image settings of the data layers, which moved to transform_param.

Only second-generation layers are looked at: in a current layer these fields have no effect.
Caffe: upgrade_proto.cpp, UpgradeNetDataTransformation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sparknet.proto import caffe_pb2

_V1 = caffe_pb2.V1LayerParameter
_PARAMS: dict[int, str] = {
    _V1.DATA: "data_param",
    _V1.IMAGE_DATA: "image_data_param",
    _V1.WINDOW_DATA: "window_data_param",
}
_MOVED = ("scale", "mean_file", "crop_size", "mirror")


def needed(net: caffe_pb2.NetParameter) -> bool:
    return any(param.HasField(field) for _, param in _data_layers(net) for field in _MOVED)


def upgrade(net: caffe_pb2.NetParameter) -> None:
    for layer, param in _data_layers(net):
        transform: Any = layer.transform_param
        # Caffe leaves both messages present, even where nothing moves.
        param.SetInParent()
        transform.SetInParent()
        for field in _MOVED:
            if param.HasField(field):
                setattr(transform, field, getattr(param, field))
                param.ClearField(field)


def _data_layers(net: caffe_pb2.NetParameter) -> Iterator[tuple[caffe_pb2.V1LayerParameter, Any]]:
    for layer in net.layers:
        if layer.type in _PARAMS:
            yield layer, getattr(layer, _PARAMS[layer.type])
