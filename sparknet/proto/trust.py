"""Nets of unknown origin: they import nothing, write nothing and read no file.

Each of their layers carries a mark, which stays in memory: it goes wherever the layer's message
goes, to Spark's workers too, and into no file.
"""

from __future__ import annotations

from sparknet.errors import LayerError
from sparknet.proto import caffe_pb2
from sparknet.proto.upgrade import needs_upgrade, upgrade_net

UNTRUSTED = "the net is of unknown origin; give trusted=True (--trusted) if you know it"


def with_trust(net: caffe_pb2.NetParameter, trusted: bool | None) -> caffe_pb2.NetParameter:
    """A net that is trusted or not; None leaves it as it is."""
    if trusted is None:
        return net
    copy = caffe_pb2.NetParameter()
    copy.CopyFrom(upgrade_net(net) if needs_upgrade(net) else net)
    mark(copy, trusted)
    return copy


def unmarked(net: caffe_pb2.NetParameter) -> caffe_pb2.NetParameter:
    """As it is written to files."""
    copy = caffe_pb2.NetParameter()
    copy.CopyFrom(net)
    mark(copy, True)
    return copy


def mark(net: caffe_pb2.NetParameter, trusted: bool) -> None:
    """In place; the net is of the current generation."""
    for layer in net.layer:
        if trusted:
            layer.ClearField("untrusted")
        else:
            layer.untrusted = True


def check_trusted(layer: caffe_pb2.LayerParameter, deed: str) -> None:
    """LayerError if a layer of unknown origin is about to do something outside the net."""
    if layer.untrusted:
        raise LayerError(layer.name, f"{layer.type}: {deed} is refused: {UNTRUSTED}")
