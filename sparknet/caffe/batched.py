"""Passes over any number of inputs, in batches of the net's size.

Caffe: pycaffe.py, _Net_forward_all and _Net_forward_backward_all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparknet.errors import SpecError

if TYPE_CHECKING:
    from sparknet.caffe.net import Net

Arrays = dict[str, Any]


def forward_all(net: Net, blobs: Sequence[str] | None, given: Mapping[str, Any]) -> Arrays:
    """Outputs for each input, the padding cut off."""
    outs: dict[str, list[Any]] = {}
    for batch in batches(net, given):
        _collect(outs, net.forward(blobs=blobs, **batch))
    return _join(outs, _length(given))


def forward_backward_all(
    net: Net, blobs: Sequence[str] | None, diffs: Sequence[str] | None, given: Mapping[str, Any]
) -> tuple[Arrays, Arrays]:
    """Outputs, and input gradients, for each input and output gradient."""
    forward = {name: given[name] for name in net.inputs if name in given}
    backward = {name: given[name] for name in net.outputs if name in given}
    outs: dict[str, list[Any]] = {}
    grads: dict[str, list[Any]] = {}
    steps = zip(batches(net, forward), _or_empty(batches(net, backward)), strict=False)
    for batch, tops in steps:
        _collect(outs, net.forward(blobs=blobs, **batch))
        _collect(grads, net.backward(diffs=diffs, **tops))
    return _join(outs, _length(given)), _join(grads, _length(given))


def batches(net: Net, arrays: Mapping[str, Any]) -> Iterator[Arrays]:
    """Batches of the net's size; the last one padded with zeros."""
    if not arrays:
        return
    size = int(next(iter(net.blobs.values())).shape[0])
    if size < 1:
        raise SpecError("the net's batch size is 0")
    for begin in range(0, _length(arrays), size):
        batch = {}
        for name, values in arrays.items():
            part = np.asarray(values[begin : begin + size])
            batch[name] = np.zeros((size, *part.shape[1:]), np.float32)
            batch[name][: len(part)] = part
        yield batch


def _length(arrays: Mapping[str, Any]) -> int:
    return len(next(iter(arrays.values()))) if arrays else 0


def _collect(parts: dict[str, list[Any]], made: Arrays) -> None:
    """Copies of a batch's items; a scalar (a loss) counts as one item a batch."""
    for name, values in made.items():
        parts.setdefault(name, []).extend(np.array(values, ndmin=1))


def _or_empty(batches: Iterator[Arrays]) -> Iterator[Arrays]:
    yield from batches
    while True:
        yield {}


def _join(parts: Mapping[str, Sequence[Any]], length: int) -> Arrays:
    return {name: np.asarray(values)[:length] for name, values in parts.items()}
