"""Nets in text, and the shapes that their layers give, one layer after the other."""

from collections.abc import Iterable

from sparknet.layers import Layer, Plan, Shape, make
from sparknet.layers.layer import TRAIN
from sparknet.proto import caffe_pb2, parse_text, read_text


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
