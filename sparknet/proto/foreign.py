"""Binary nets of forks: settings whose numbers mean something else here are left out."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from sparknet.proto import caffe_pb2
from sparknet.proto.byte_source import ByteSource
from sparknet.proto.wire import BYTES, WireField, encode_varint, read_field

LAYER = 100
"""The number of `layer` in a net, and of the first settings in a layer."""


def without_foreign(skeleton: bytes) -> bytes:
    """Return a net's message without settings of layers that cannot be read."""
    source, position, parts = ByteSource(skeleton), 0, []
    while position < len(skeleton):
        field = read_field(source, position, len(skeleton))
        content = skeleton[field.body : field.stop]
        if field.number == LAYER and field.wire == BYTES:
            layer = _layer(content)
            parts.append(encode_varint(LAYER << 3 | BYTES) + encode_varint(len(layer)) + layer)
        else:
            parts.append(skeleton[position : field.stop])
        position = field.stop
    return b"".join(parts)


def _layer(content: bytes) -> bytes:
    source, position, parts = ByteSource(content), 0, []
    while position < len(content):
        field = read_field(source, position, len(content))
        if field.number < LAYER or _is_readable(content, field):
            parts.append(content[position : field.stop])
        position = field.stop
    return b"".join(parts)


def _is_readable(content: bytes, field: WireField) -> bool:
    layer = caffe_pb2.LayerParameter()
    try:
        layer.ParseFromString(content[field.start : field.stop])
        layer.SerializePartialToString()
        str(layer)
    except (DecodeError, RecursionError, ValueError):
        return False
    return True
