"""Nets in text, and the shapes that their layers give, one layer after the other."""

from collections.abc import Iterable

from sparknet.layers import Layer, Plan, Shape, make
from sparknet.layers.layer import TEST, TRAIN
from sparknet.proto import caffe_pb2, parse_text, read_text

PHASES = {"TRAIN": TRAIN, "TEST": TEST}


def read_net(path):
    return read_text(path, caffe_pb2.NetParameter)


def layer(type_name: str, options: str = "", bottoms: int = 1, tops: int = 1) -> Layer:
    """A layer called ``l`` with bottoms ``b0`` … and tops ``t0`` …."""
    names = "".join(f'bottom: "b{i}" ' for i in range(bottoms))
    names += "".join(f'top: "t{i}" ' for i in range(tops))
    text = f'name: "l" type: "{type_name}" {names} {options}'
    return make(parse_text(text, caffe_pb2.LayerParameter), TRAIN)


def plan(type_name: str, options: str, *bottoms: Iterable[int], tops: int = 1) -> Plan:
    shapes = [tuple(shape) for shape in bottoms]
    return layer(type_name, options, len(shapes), tops).plan(shapes)


def shapes_of_params(found: Plan) -> list[Shape]:
    return [param.shape for param in found.params]


def walk(net, phase, inputs=None):
    """Blob shapes and plans of a net without splits or phase rules; ``inputs`` reshape it."""
    inputs = inputs or {}
    blobs: dict[str, Shape] = {}
    plans: dict[str, Plan] = {}
    for parameter in net.layer:
        made = make(parameter, PHASES[phase])
        found = made.plan([blobs[name] for name in parameter.bottom])
        plans[parameter.name] = found
        for name, shape in zip(parameter.top, found.tops, strict=False):
            blobs[name] = inputs.get(name, shape) if parameter.type == "Input" else shape
    return blobs, plans
