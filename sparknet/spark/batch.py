"""How many records `SparkModel.transform` puts through a net at a time, unless it is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from sparknet.graph.records import Outline
from sparknet.layers import Layer
from sparknet.net.fed import FedNet
from sparknet.net.flow import dependent

ENOUGH = 64
"""More gain little: CaffeNet does 33 records a second one by one, 152 in batches of 32 or 64."""
_LARGEST = 64 << 20
"""Bytes of the largest blob: larger ones only take memory."""
_FLOAT = 4


def batch_for(tested: FedNet, outputs: Sequence[str]) -> int:
    """As many as the net is described for; more where each record has its results for itself."""
    described = tested.batch
    inputs = {entry.name: entry.shape for entry in tested.entries}
    outline = Outline(tested.described.layer, tested.phase)
    shapes, axes = outline.axes(inputs, {entry.name: entry.axis for entry in tested.entries})
    fed = dependent(tested.described, list(inputs))
    for layer in _above(outline.layers, outputs):
        bottoms = [name for name in layer.parameter.bottom if name in fed]
        if any(name not in axes for name in (*bottoms, *(layer.parameter.top if bottoms else ()))):
            return described
        if any(layer.mixes(shapes[name], axes[name]) for name in bottoms):
            return described
    record = _FLOAT * max(prod(shape) for shape in shapes.values()) // max(described, 1)
    batch = ENOUGH
    while batch > 1 and batch * record > _LARGEST:
        batch //= 2
    return max(batch, described)


def _above(layers: Sequence[Layer], outputs: Sequence[str]) -> Iterator[Layer]:
    """The layers that the outputs are made by."""
    needed = set(outputs)
    for layer in reversed(layers):
        if not needed.isdisjoint(layer.parameter.top):
            needed.update(layer.parameter.bottom)
            yield layer
