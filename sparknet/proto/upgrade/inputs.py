"""The net's own input fields, which became an Input layer.

Caffe: upgrade_proto.cpp, UpgradeNetInput.
"""

from __future__ import annotations

from sparknet.errors import SpecError
from sparknet.proto import caffe_pb2


def needed(net: caffe_pb2.NetParameter) -> bool:
    return bool(net.input)


def upgrade(net: caffe_pb2.NetParameter) -> None:
    """Put an Input layer first. Inputs without sizes (in old model files) are just dropped."""
    if net.input_shape or net.input_dim:
        layers = [_input_layer(net), *net.layer]
        del net.layer[:]
        net.layer.extend(layers)
    for field in ("input", "input_shape", "input_dim"):
        net.ClearField(field)


def _input_layer(net: caffe_pb2.NetParameter) -> caffe_pb2.LayerParameter:
    layer = caffe_pb2.LayerParameter(name="input", type="Input", top=net.input)
    layer.input_param.SetInParent()
    count = len(net.input)
    if net.input_shape:
        _check(count, len(net.input_shape), "input_shape", 1)
        layer.input_param.shape.extend(net.input_shape[:count])
    else:
        _check(count, len(net.input_dim), "input_dim", 4)
        for first in range(0, 4 * count, 4):
            layer.input_param.shape.add(dim=net.input_dim[first : first + 4])
    return layer


def _check(inputs: int, given: int, field: str, each: int) -> None:
    if given < each * inputs:
        raise SpecError(f"{inputs} input fields need {each * inputs} {field} fields, found {given}")
