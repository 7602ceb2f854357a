"""weighted: a net for training in which records count for more or less, whatever its losses."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from sparknet.errors import SpecError
from sparknet.graph.records import Outline
from sparknet.layers import LAYERS, TRAIN
from sparknet.layers.input import Input
from sparknet.layers.record_weights import RecordWeights
from sparknet.net.description import NetMessage, SolverMessage
from sparknet.net.flow import from_learned
from sparknet.net.net import Net
from sparknet.proto import caffe_pb2

LayerMessage = caffe_pb2.LayerParameter
_WEIGHT = "record_weight"
"""How the names of the inputs for weights begin."""


def weighted(net: Net) -> tuple[Net, list[str]]:
    """A net with the same weights and solver, and its new inputs, which take a number a record.

    The gradient and the sum of each loss are those of records that count by these numbers; what
    the loss is divided by stays, so that the mean of the numbers over all records should be 1.
    """
    assert net.settings is not None
    if not net.backend.is_embedded:
        raise SpecError(
            f"backend '{net.backend.name}' has no layer type {RecordWeights.type}: weights of "
            "records need the embedded one"
        )
    described = NetMessage()
    described.CopyFrom(net.described)
    del described.layer[:]
    places = _Places(net)
    inputs: dict[int, str] = {}
    for layer in net.described.layer:
        changed = LayerMessage()
        changed.CopyFrom(layer)
        for index, blob in places.weighed(layer):
            axis = places.axis(layer, blob)
            name = inputs.setdefault(axis, _unused(net, f"{_WEIGHT}_{axis}" if axis else _WEIGHT))
            top = _unused(net, f"{layer.name}/{blob}/weighted")
            described.layer.append(
                LayerMessage(name=top, type=RecordWeights.type, bottom=[blob, name], top=[top])
            )
            changed.bottom[index] = top
        described.layer.append(changed)
    if not inputs:
        raise SpecError(f"net '{net.described.name}' has no loss whose records could have weights")
    for axis, name in reversed(inputs.items()):
        entry = LayerMessage(name=name, type=Input.type, top=[name])
        entry.input_param.shape.add().dim.extend([1] * axis + [net.batch_size])
        described.layer.insert(0, entry)
    made = Net(
        _solver(net, described),
        net.get_weights(),
        precision=net.precision,
        device=net.device,
        preprocessing=net.preprocessing,
    )
    return made, list(inputs.values())


class _Places:
    """Where the losses of a net read what was learned, and where records lie there."""

    def __init__(self, net: Net) -> None:
        self._net = net
        learned = {name for name, params in net.net.params.items() if len(params)}
        self._flow = from_learned(net.described, learned)
        entries = net.inputs.values()
        outline = Outline(net.described.layer, TRAIN)
        _, self._axes = outline.axes(
            {entry.name: entry.shape for entry in entries},
            {entry.name: entry.axis for entry in entries},
        )

    def weighed(self, layer: LayerMessage) -> Iterator[tuple[int, str]]:
        """The bottoms of a loss that a gradient goes to."""
        kind = LAYERS.get(layer.type)
        is_loss = any(layer.loss_weight) or (kind is not None and kind.loss)
        for index, blob in enumerate(layer.bottom if is_loss else ()):
            if blob in self._flow:
                yield index, blob

    def axis(self, layer: LayerMessage, blob: str) -> int:
        if blob in self._axes:
            return self._axes[blob]
        shape = tuple(self._net.net.blobs[blob].shape)
        if (
            LAYERS.get(layer.type) is None
            or shape[:1] != (self._net.batch_size,)
            or not prod(shape)
        ):
            raise SpecError(
                f"layer '{layer.name}' reads '{blob}' of shape {shape}, in which records have no "
                "axis of their own: they cannot have weights"
            )
        return 0


def _unused(net: Net, name: str) -> str:
    taken = {top for layer in net.described.layer for top in layer.top}
    while name in taken:
        name += "_"
    return name


def _solver(net: Net, train: NetMessage) -> SolverMessage:
    """The solver with another net for training; its nets for testing are those of ``net``."""
    assert net.settings is not None
    changed = SolverMessage()
    changed.CopyFrom(net.settings)
    for field in ("net", "net_param", "train_net", "train_net_param", "train_state", "weights"):
        changed.ClearField(field)
    for field in ("test_net", "test_net_param", "test_state", "test_iter", "test_interval"):
        changed.ClearField(field)
    changed.train_net_param.CopyFrom(train)
    tests = net.described_tests
    changed.test_net_param.extend(tests)
    changed.test_iter.extend([1] * len(tests))
    changed.test_interval = 1
    return changed
