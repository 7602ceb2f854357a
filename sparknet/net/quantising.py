"""Net.quantize: what a net's blobs are rounded to in eight bits, found on some records."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sparknet.errors import SpecError, outside
from sparknet.net.backend import Backend, Embedded
from sparknet.net.description import SolverMessage
from sparknet.net.fed import FedNet
from sparknet.proto import caffe_pb2

RECORDS = 512
"""The records that a calibration looks at, unless told otherwise."""

MOST_LOSS = 0.1
"""How far from float32's a layer's values may be in eight bits, as a share of their norm."""


def quantizable(backend: Backend, solver: SolverMessage | None) -> Embedded:
    """The backend of a net, which is refused where none multiplies in eight bits."""
    if solver is not None:
        raise SpecError("quantize a net without a solver: Net(net, weights=…)")
    if backend.precision == "bf16":
        raise SpecError("quantize a net of precision float32; this one's is bf16")
    if not isinstance(backend, Embedded):
        raise SpecError("quantize needs the embedded backend")
    if backend.device is not None:
        raise SpecError(
            f"quantize a net of the native engine; this one computes on {backend.device}"
        )
    return backend


def calibrate(
    fed: FedNet, method: str, float32: Iterable[str], most: int, most_loss: float
) -> caffe_pb2.Int8Parameter:
    """Run a net of float32 that keeps its blobs over some records.

    A warning names each layer that loses more than ``most_loss``, and stays in float32."""
    from sparknet.caffe.int8 import Calibration

    if most < 1:
        raise SpecError(f"a calibration needs at least 1 record, not {most}")
    looked = 0
    calibration: Calibration | None = None
    while looked < most and (rows := fed.fill(endless=False)):
        fed.net.forward()
        calibration = calibration or Calibration(fed.net.graph)
        calibration.note({name: fed.net.blobs[name].data for name in calibration.blobs})
        looked += rows
    if calibration is None:
        raise SpecError("there are no records to calibrate on")
    made = calibration.done(method, float32)
    lossy = {name: loss for name, loss in losses(fed.net, made).items() if not loss <= most_loss}
    for name, loss in lossy.items():
        warnings.warn(
            f"layer '{name}' stays in float32: in eight bits its values are {loss:.0%} off, more "
            f"than {most_loss:.0%}",
            stacklevel=outside(),
        )
    return calibration.done(method, {*float32, *lossy})


def losses(net: Any, given: caffe_pb2.Int8Parameter) -> dict[str, float]:
    """How far each layer of eight bits, alone, is from a net of float32 after a pass, as a share of
    the norm of its values; nothing where the processor has no such numbers."""
    from sparknet.caffe import Net as CaffeNet
    from sparknet.caffe.int8 import multiplying

    message = caffe_pb2.NetParameter()
    message.CopyFrom(net.graph.parameter)
    message.int8_param.CopyFrom(given)
    narrow = CaffeNet.from_proto(message, precision="int8", params=net.flat_params)
    if narrow.precision != "int8":
        return {}
    found, numbers = {}, multiplying(net.graph, given)
    nodes = [net.graph.nodes[number] for number in numbers]
    # Each layer runs alone, and what stands behind it in place does not run again.
    names = net.graph.blob_names
    read = {names[blob] for node in nodes for blob in node.bottom_ids}
    values = {name: np.array(net.blobs[name].data) for name in read}
    for number, node in zip(numbers, nodes, strict=True):
        for one in (net, narrow):
            for name in (names[blob] for blob in node.bottom_ids):
                one.blobs[name].reshape(*values[name].shape)
                one.blobs[name].data[...] = values[name]
            one._forward(number, number)
        tops = [names[blob] for blob in node.top_ids]
        want = np.concatenate([np.ravel(net.blobs[name].data) for name in tops])
        made = np.concatenate([np.ravel(narrow.blobs[name].data) for name in tops])
        norm = float(np.linalg.norm(want))
        found[node.name] = float(np.linalg.norm(made - want)) / norm if norm > 0 else 0.0
    return found


def in_int8(
    described: caffe_pb2.NetParameter, net: Any, arrays: Sequence[Sequence[Any]]
) -> caffe_pb2.NetParameter:
    """A description that says what its net is rounded to, if it is quantised; `write_model` then
    writes eight bits."""
    given = getattr(net, "int8_param", None)
    if given is None:
        return described
    from sparknet.caffe.int8 import mark_weights

    made = caffe_pb2.NetParameter()
    made.CopyFrom(described)
    made.int8_param.CopyFrom(given)
    for layer, own in zip(made.layer, arrays, strict=True):
        del layer.blobs[:]
        for array in own:
            layer.blobs.add().shape.dim.extend(array.shape)
    mark_weights(net.graph, made, arrays)
    return made
