"""A net without the layers that sparknet does not know, and without those that need them."""

from __future__ import annotations

from dataclasses import dataclass

from sparknet.errors import SpecError, clean
from sparknet.layers import LAYERS
from sparknet.proto import caffe_pb2
from sparknet.proto.forks import origin

POLICIES = ("refuse", "skip")


@dataclass(frozen=True)
class LeftOut:
    """A layer that is not built."""

    name: str
    type: str
    reason: str


def check_policy(unknown: str) -> None:
    if unknown not in POLICIES:
        raise SpecError(f"unknown must be 'refuse' or 'skip'; it is {unknown!r}")


def leave_out_unknown(
    net: caffe_pb2.NetParameter,
) -> tuple[caffe_pb2.NetParameter, tuple[LeftOut, ...]]:
    """Return a net without unknown layers, and without those that read their tops."""
    remaining = caffe_pb2.NetParameter()
    remaining.CopyFrom(net)
    del remaining.layer[:]
    dropped: dict[str, str] = {}
    left_out = []
    for layer in net.layer:
        reason = _reason(layer, dropped)
        if reason:
            left_out.append(LeftOut(layer.name, layer.type, reason))
            dropped.update((top, layer.name) for top in layer.top)
        else:
            remaining.layer.add().CopyFrom(layer)
            for top in layer.top:
                dropped.pop(top, None)
    return remaining, tuple(left_out)


def _reason(layer: caffe_pb2.LayerParameter, dropped: dict[str, str]) -> str:
    if layer.type not in LAYERS:
        return f"unknown type{origin('type', layer.type)}"
    for bottom in layer.bottom:
        if bottom in dropped:
            return f"reads '{clean(bottom)}' of '{clean(dropped[bottom])}'"
    return ""
