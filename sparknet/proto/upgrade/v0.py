"""The first generation, `layers { layer { type: "relu" } }`, to the second.

Caffe: upgrade_proto.cpp, UpgradeV0Net.
"""

from __future__ import annotations

from typing import Any

from sparknet.errors import LayerError
from sparknet.proto import caffe_pb2
from sparknet.proto.suggest import did_you_mean
from sparknet.proto.upgrade import v0_padding
from sparknet.proto.upgrade.dropped import warn_dropped
from sparknet.proto.upgrade.v0_fields import ANY_TYPE, FIELDS, TYPES

_KEPT = {"name", "layers", "input", "input_dim", "force_backward"}


def needed(net: caffe_pb2.NetParameter) -> bool:
    return any(layer.HasField("layer") for layer in net.layers)


def upgrade(net: caffe_pb2.NetParameter) -> None:
    """Fold padding layers in, then sort each layer's settings into the message of its type."""
    old_layers = v0_padding.fold(net)
    net.ClearField("layers")
    for descriptor, _ in net.ListFields():
        if descriptor.name not in _KEPT:
            net.ClearField(descriptor.name)
            warn_dropped(f"a net of the first generation has no '{descriptor.name}': left out")
    for old in old_layers:
        _upgrade_connection(old, net.layers.add())


def _upgrade_connection(old: caffe_pb2.V1LayerParameter, new: caffe_pb2.V1LayerParameter) -> None:
    new.bottom.extend(old.bottom)
    new.top.extend(old.top)
    if old.HasField("layer"):
        _upgrade_layer(old.layer, new)
    else:
        warn_dropped(f"layer '{old.name}' has no settings of the first generation: left out")


def _upgrade_layer(old: caffe_pb2.V0LayerParameter, new: caffe_pb2.V1LayerParameter) -> None:
    if old.HasField("name"):
        new.name = old.name
    if old.HasField("type"):
        new.type = _new_type(old)
    new.blobs.extend(old.blobs)
    new.blobs_lr.extend(old.blobs_lr)
    new.weight_decay.extend(old.weight_decay)
    for field, by_type in FIELDS.items():
        if not old.HasField(field):
            continue
        path = by_type.get(old.type) or by_type.get(ANY_TYPE)
        if path:
            _put(new, path, getattr(old, field))
        else:
            warn_dropped(
                f"layer '{old.name}': type '{old.type}' has no setting '{field}': left out"
            )


def _new_type(old: caffe_pb2.V0LayerParameter) -> caffe_pb2.V1LayerParameter.LayerType:
    if old.type not in TYPES:
        hint = did_you_mean(old.type, TYPES)
        raise LayerError(old.name, f"unknown type '{old.type}'{hint}")
    return TYPES[old.type]


def _put(new: caffe_pb2.V1LayerParameter, path: str, value: Any) -> None:
    message: Any = new
    *messages, field = path.split(".")
    for name in messages:
        message = getattr(message, name)
    target = getattr(message, field)
    if hasattr(target, "CopyFrom"):
        target.CopyFrom(value)
    elif hasattr(target, "append"):
        target.append(value)
    else:
        setattr(message, field, value)
