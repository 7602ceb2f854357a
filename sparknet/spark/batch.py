"""The default batch size of `SparkModel.transform`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from sparknet.graph.records import Outline
from sparknet.layers import Layer
from sparknet.net.fed import FedNet
from sparknet.net.flow import dependent

ENOUGH = 64
"""Large nets gain little from more: CaffeNet predicts 33 records/s singly, 152 in 32s or 64s."""
MOST = 1024
"""Small nets gain from more, because each batch costs 0.1 ms of Python: LeNet predicts 27,000
records/s in 64s and 29,000 in 128s, an MLP of 100 inputs 210,000 in 64s and 330,000 in 1024s."""
_SMALL = 8 << 20
"""The largest blob of such a batch in bytes."""
_LARGEST = 64 << 20
"""The limit of the largest blob in bytes: larger batches only take memory."""
_FLOAT = 4


def batch_for(tested: FedNet, outputs: Sequence[str]) -> int:
    """The batch size of the net's description, or more where records do not affect each other."""
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
    while batch < MOST and 2 * batch * record <= _SMALL:
        batch *= 2
    return max(batch, described)


def _above(layers: Sequence[Layer], outputs: Sequence[str]) -> Iterator[Layer]:
    """The layers that the outputs depend on."""
    needed = set(outputs)
    for layer in reversed(layers):
        if not needed.isdisjoint(layer.parameter.top):
            needed.update(layer.parameter.bottom)
            yield layer


def largest_results(tested: FedNet, outputs: Sequence[str], batch: int) -> int:
    """The most rows of an Arrow batch of results, a multiple of ``batch``: 64 MiB of values."""
    shapes, axes = tested.layout()
    record = sum(
        prod(size for at, size in enumerate(shapes[name]) if at != axes.get(name))
        for name in outputs
    )
    return max(_LARGEST // (_FLOAT * max(record, 1)) // batch, 1) * batch
